import type { View } from "@tollgate/store-engine";
import {
  erasureStatements,
  openStepStatements,
  type Reads,
  type SqlParameters,
  viewRows,
} from "@tollgate/store-sql";
import { type Connection, queryTimeouts } from "../database/connection.ts";
import { postgresDialect, restOfSteps } from "../database/postgres-dialect.ts";

/** Thrown when a decision reads rows that were not fetched yet. */
class MissingRow extends Error {
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

/** Joins whose plan for small tables, once prepared, would be used for large ones. */
const plannedEachTime: ReadonlySet<string> = new Set([
  openStepStatements.matchingBranches,
  erasureStatements.neededSince,
]);

/**
 * Answers a question about rows, and fetches each row it reads. After each fetch the question starts again with all the rows
 * fetched so far; the last run gives the answer.
 */
export async function askFetching<Answer>(
  connection: Pick<Connection, "all" | "query">,
  question: (view: View) => Answer,
): Promise<Answer> {
  const fetched = new Map<string, readonly unknown[]>();
  const { view, restart } = replayed(
    viewRows(readsOf(fetched), { dialect: postgresDialect, oldSteps: restOfSteps }),
  );
  for (;;) {
    try {
      restart();
      return question(view);
    } catch (error) {
      if (!(error instanceof MissingRow)) throw error;
      const { key, text, parameters } = error;
      const rows = plannedEachTime.has(text)
        ? connection.query(text, parameters, queryTimeouts.statement)
        : connection.all(text, parameters);
      fetched.set(key, await rows);
    }
  }
}

/**
 * Answers each read once. A question that starts again begins with the same reads in the same order, so it gets their
 * answers by their places. Finding and reading all rows again would cost the square of their number.
 */
function replayed(view: View): { readonly view: View; restart(): void } {
  const answers: unknown[] = [];
  let next = 0;
  const answer = (read: View[keyof View], given: readonly unknown[]): unknown => {
    if (next === answers.length) answers.push(Reflect.apply(read, undefined, given));
    return answers[next++];
  };
  const reads = Object.entries(view).map(([name, read]: [string, View[keyof View]]) => [
    name,
    (...given: readonly unknown[]) => answer(read, given),
  ]);
  return {
    view: Object.fromEntries(reads),
    restart() {
      next = 0;
    },
  };
}

function readsOf(fetched: ReadonlyMap<string, readonly unknown[]>): Reads {
  const all = (text: string, parameters: SqlParameters): readonly unknown[] => {
    const key = keyOf(text, parameters);
    const rows = fetched.get(key);
    if (!rows) throw new MissingRow(text, parameters, key);
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
