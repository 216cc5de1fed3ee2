import type { Gateway } from "@tollgate/core";
import {
  type HistoryRequest,
  type ReceivedAnswer,
  receive,
  referenceIn,
  requestOf,
} from "../histories/ask.ts";

/** The requests to send, and their keys in order. */
export interface LoadPlan {
  readonly secrets: readonly string[];
  /** How many requests run at once. */
  readonly concurrency: number;
  /** How many budget refusals a worker receives before it goes on to the next key. */
  readonly refusals: number;
  /** Whether the report contains Step ids. */
  readonly keepsIds?: boolean;
}

/** The results of a load so far. */
export interface LoadReport {
  /** The key that the last worker uses. */
  readonly key: number;
  /** Ids of the Steps with complete answers, if the plan asks for them. */
  readonly acknowledged: readonly string[];
  readonly answered: number;
  readonly refused: number;
  /** Answers of other kinds: 503 and cut streams. */
  readonly failed: number;
  /** Those of them with a status that no failing store explains. */
  readonly wrong: number;
  readonly isDone: boolean;
}

export interface Load {
  begin(plan: unknown): void;
  end(): Promise<void>;
  report(): LoadReport;
}

/** Sends requests to a gateway in its own process, streamed and plain in turn. */
export function createLoad(gateway: Gateway): Load {
  const acknowledged: string[] = [];
  const keys: number[] = [];
  let [answered, refused, failed, wrong, running] = [0, 0, 0, 0, 0];
  let keepsIds = true;
  let isEnding = false;
  let work: Promise<unknown> = Promise.resolve();

  const note = (answer: ReceivedAnswer): boolean => {
    const reference = referenceIn(answer);
    if (reference !== null) {
      answered++;
      if (keepsIds) acknowledged.push(reference.id.slice("chatcmpl-".length));
    } else if (answer.status === 429) refused++;
    else {
      failed++;
      if (answer.status !== 200 && answer.status !== 503) wrong++;
    }
    return answer.status === 429;
  };
  const exhaust = async (secret: string, refusals: number): Promise<void> => {
    for (let [refusalCount, asked] = [0, 0]; refusalCount < refusals && !isEnding; asked++)
      if (note(await ask(gateway, { secret, stream: asked % 2 === 0 }))) refusalCount++;
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
      if (!isPlan(plan)) throw new Error("Invalid load plan.");
      running = plan.concurrency;
      keepsIds = plan.keepsIds ?? true;
      work = Promise.all(
        Array.from({ length: plan.concurrency }, (_, number) => worker(number, plan)),
      );
    },
    async end() {
      isEnding = true;
      await work;
    },
    report: () => ({
      key: Math.min(...keys),
      acknowledged,
      answered,
      refused,
      failed,
      wrong,
      isDone: running === 0,
    }),
  };
}

async function ask(
  gateway: Gateway,
  { secret, stream }: { readonly secret: string; readonly stream: boolean },
): Promise<ReceivedAnswer> {
  const asked: HistoryRequest = {
    secret,
    path: "chat/completions",
    body: {
      model: "test/tollgate/scripted",
      messages: [{ role: "user", content: "Hello" }],
      max_tokens: 50,
      stream,
    },
  };
  return receive(await gateway.fetch(requestOf(asked)));
}

function isPlan(value: unknown): value is LoadPlan {
  return (
    typeof value === "object" &&
    value !== null &&
    "secrets" in value &&
    Array.isArray(value.secrets) &&
    ["concurrency", "refusals"].every((name) => Number.isSafeInteger(Reflect.get(value, name)))
  );
}
