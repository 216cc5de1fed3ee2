import type { Gateway } from "@tollgate/core";
import { type Asked, requestOf, type Seen, seen, toldBy } from "../histories/ask.ts";

/** What to ask, and with which keys, one after the other. */
export interface LoadPlan {
  readonly secrets: readonly string[];
  /** How many ask at once. */
  readonly workers: number;
  /** How many refusals for its budget a worker takes before it goes on to the next key. */
  readonly refusals: number;
  /** Whether ids of Steps are told. */
  readonly remembers?: boolean;
}

/** What has come of a load so far. */
export interface LoadTold {
  /** The key that the last worker is at. */
  readonly key: number;
  /** Ids of the Steps whose answers came whole, where the plan asks for them. */
  readonly acknowledged: readonly string[];
  readonly answered: number;
  readonly refused: number;
  /** Answers of neither kind: 503 and cut streams. */
  readonly failed: number;
  readonly isDone: boolean;
}

export interface Load {
  begin(plan: unknown): void;
  end(): Promise<void>;
  told(): LoadTold;
}

/** Asks a gateway in its own process, streamed and plain in turn. */
export function createLoad(gateway: Gateway): Load {
  const acknowledged: string[] = [];
  const keys: number[] = [];
  let [answered, refused, failed, running] = [0, 0, 0, 0];
  let remembers = true;
  let isEnding = false;
  let work: Promise<unknown> = Promise.resolve();

  const note = (answer: Seen): boolean => {
    const told = toldBy(answer);
    if (told !== null) {
      answered++;
      if (remembers) acknowledged.push(told.id.slice("chatcmpl-".length));
    } else if (answer.status === 429) refused++;
    else failed++;
    return answer.status === 429;
  };
  const exhaust = async (secret: string, refusals: number): Promise<void> => {
    for (let [met, asked] = [0, 0]; met < refusals && !isEnding; asked++)
      if (note(await ask(gateway, { secret, stream: asked % 2 === 0 }))) met++;
  };
  const worker = async (number: number, { secrets, refusals }: LoadPlan): Promise<void> => {
    for (const [key, secret] of secrets.entries()) {
      keys[number] = key;
      await exhaust(secret, refusals);
    }
    running--;
  };
  return {
    begin(plan) {
      if (!isPlan(plan)) throw new Error("this is no plan of a load");
      running = plan.workers;
      remembers = plan.remembers ?? true;
      work = Promise.all(Array.from({ length: plan.workers }, (_, number) => worker(number, plan)));
    },
    async end() {
      isEnding = true;
      await work;
    },
    told: () => ({
      key: Math.min(...keys),
      acknowledged,
      answered,
      refused,
      failed,
      isDone: running === 0,
    }),
  };
}

async function ask(
  gateway: Gateway,
  { secret, stream }: { readonly secret: string; readonly stream: boolean },
): Promise<Seen> {
  const asked: Asked = {
    secret,
    path: "chat/completions",
    body: {
      model: "test/tollgate/scripted",
      messages: [{ role: "user", content: "Hello" }],
      max_tokens: 50,
      stream,
    },
  };
  return seen(await gateway.fetch(requestOf(asked)));
}

function isPlan(value: unknown): value is LoadPlan {
  return (
    typeof value === "object" &&
    value !== null &&
    "secrets" in value &&
    Array.isArray(value.secrets) &&
    ["workers", "refusals"].every((name) => Number.isSafeInteger(Reflect.get(value, name)))
  );
}
