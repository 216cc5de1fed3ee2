import type { Gateway } from "@tollgate/core";
import { decisionOfWhole, type ReceivedAnswer, receive, requestOf } from "../histories/ask.ts";

/** The requests to send, and their keys in order. */
export interface LoadPlan {
  readonly secrets: readonly string[];
  /** How many requests run at once. */
  readonly concurrency: number;
  /** How many budget refusals a worker receives before it goes on to the next key. */
  readonly refusals: number;
  /** Whether the report contains the decisions of Steps. */
  readonly keepsIds?: boolean;
}

/** The results of a load so far. */
export interface LoadReport {
  /** The key that the last worker uses. */
  readonly key: number;
  /** The decisions of the Steps with complete answers, if the plan asks for them. */
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

/** Sends requests to every endpoint of a gateway in its own process, streamed and plain in turn. */
export function createLoad(gateway: Gateway): Load {
  const acknowledged: string[] = [];
  const keys: number[] = [];
  let [answered, refused, failed, wrong, running] = [0, 0, 0, 0, 0];
  let keepsIds = true;
  let isEnding = false;
  let work: Promise<unknown> = Promise.resolve();

  const note = (answer: ReceivedAnswer): boolean => {
    const decision = decisionOfWhole(answer);
    if (decision !== null) {
      answered++;
      if (keepsIds) acknowledged.push(decision);
    } else if (answer.status === 429) refused++;
    else {
      failed++;
      if (answer.status !== 200 && answer.status !== 503) wrong++;
    }
    return answer.status === 429;
  };
  const exhaust = async (secret: string, refusals: number): Promise<void> => {
    for (let [refusalCount, asked] = [0, 0]; refusalCount < refusals && !isEnding; asked++)
      if (note(await ask(gateway, secret, asked))) refusalCount++;
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

const messages = [{ role: "user", content: "Hello" }];

/** The endpoints, with requests that hold the same amount: 10 tokens of input and 50 of output, or 110 of input. */
const bodies = [
  ["chat/completions", { messages, max_tokens: 50 }],
  ["responses", { input: "Hello", max_output_tokens: 50 }],
  ["messages", { messages, max_tokens: 50 }],
  ["embeddings", { input: Array(110).fill(1) }],
] as const;

async function ask(gateway: Gateway, secret: string, number: number): Promise<ReceivedAnswer> {
  const [path, fields] = bodies[number % bodies.length] ?? bodies[0];
  const stream = Math.floor(number / bodies.length) % 2 === 0;
  const body = {
    model: "test/tollgate/scripted",
    ...fields,
    ...(path === "embeddings" ? {} : { stream }),
  };
  return receive(await gateway.fetch(requestOf({ secret, path, body })));
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
