import type { View } from "@tollgate/store-engine";
import { type Reads, type SqlParameters, viewRows } from "@tollgate/store-sql";
import type { Connection } from "../database/connection.ts";
import { postgresDialect } from "../database/postgres-dialect.ts";
import { restOfSteps } from "../database/schema.ts";

/** Thrown where a decision looks at rows that were not fetched yet. */
class Missing extends Error {
  readonly text: string;
  readonly parameters: SqlParameters;
  readonly key: string;

  constructor(text: string, parameters: SqlParameters, key: string) {
    super("a row was not fetched yet");
    this.text = text;
    this.parameters = parameters;
    this.key = key;
  }
}

/**
 * Asks a question about rows that are fetched as it comes to look at them. It is asked again from the start each time, and
 * sees what was fetched before, so its answer is that of the last time.
 */
export async function askFetching<Answer>(
  connection: Pick<Connection, "all">,
  question: (view: View) => Answer,
): Promise<Answer> {
  const fetched = new Map<string, readonly unknown[]>();
  const view = viewRows(readsOf(fetched), { dialect: postgresDialect, oldSteps: restOfSteps });
  for (;;) {
    try {
      return question(view);
    } catch (error) {
      if (!(error instanceof Missing)) throw error;
      fetched.set(error.key, await connection.all(error.text, error.parameters));
    }
  }
}

function readsOf(fetched: ReadonlyMap<string, readonly unknown[]>): Reads {
  const all = (text: string, parameters: SqlParameters): readonly unknown[] => {
    const key = keyOf(text, parameters);
    const rows = fetched.get(key);
    if (!rows) throw new Missing(text, parameters, key);
    return rows;
  };
  return { all, get: (text, parameters) => all(text, parameters)[0] };
}

function keyOf(text: string, parameters: SqlParameters): string {
  const values = Object.entries(parameters).map(([name, value]) =>
    value instanceof Uint8Array ? [name, Buffer.from(value).toString("latin1")] : [name, value],
  );
  return `${text}\n${JSON.stringify(values)}`;
}
