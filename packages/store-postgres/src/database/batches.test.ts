import { expect, it } from "vitest";
import { createBatches } from "./batches.ts";
import type { Connection } from "./connection.ts";
import { PostgresFailure } from "./failure.ts";
import { createTryAgain } from "./try-again.ts";

const call = { parameters: { text: "TEXT", patience: "TEXT" }, statement: String } as const;
const never = (): never => {
  throw new Error("it is not asked for");
};

/** A call whose statements `answer` answers, with the number of those in each. */
function createCall(answer: (texts: readonly string[]) => Promise<void> = async () => {}) {
  const sizes: number[] = [];
  const connection: Connection = {
    run: never,
    get: never,
    all: never,
    query: never,
    exec: never,
    async each(_text, _names, parameters) {
      sizes.push(parameters.length);
      const texts = parameters.map(({ text }) => String(text));
      await answer(texts);
      return texts.map((text) => ({ text }));
    },
  };
  const tryAgain = createTryAgain({ random: () => 0, pause: async () => {} });
  const send = createBatches(call, { withConnection: (use) => use(connection), tryAgain });
  return { sizes, send: async (text: string) => read(await send({ text })) };
}

function read({ row, isUnsure }: Awaited<ReturnType<ReturnType<typeof createBatches>>>) {
  return [row.text("text"), isUnsure];
}

const texts = Array.from({ length: 23 }, (_, at) => `${at}`);

it("sends at once what comes first, and together what comes while two statements are under way", async () => {
  const { sizes, send } = createCall();
  const answers = await Promise.all(texts.map(send));
  expect(answers).toEqual(texts.map((text) => [text, false]));
  expect(sizes).toEqual([1, 1, 16, 4, 1]);
});

it("lets long ones go alone", async () => {
  const { sizes, send } = createCall();
  const long = "x".repeat(700_000);
  await Promise.all(["a", long, long, "b", "c"].map(send));
  expect(sizes).toEqual([1, 1, 2, 1]);
});

it("runs alone each of those whose statement failed, and rejects the one that is the cause", async () => {
  const { send } = createCall(async (all) => {
    if (all.includes("7")) throw new PostgresFailure("7 is taken", {}, "TG002");
  });
  const results = await Promise.allSettled(texts.map(send));
  expect(results.flatMap(({ status }, at) => (status === "rejected" ? [at] : []))).toEqual([7]);
});

it("tells each of those whose connection broke that they may be done already", async () => {
  let isWhole = true;
  const { send } = createCall(async (all) => {
    if (!isWhole || all.length < 16) return;
    isWhole = false;
    throw new PostgresFailure("cut", { isLost: true, isUnsure: true, isPassing: true });
  });
  const answers = await Promise.all(texts.map(send));
  expect(answers).toEqual(texts.map((text, at) => [text, at > 1 && at < 18]));
});

it("waits twice for a server that does not answer, and not once for each statement", async () => {
  const silent = { isLost: true, isPassing: true, isTimeout: true };
  const { sizes, send } = createCall(async () => {
    throw new PostgresFailure("timeout", silent);
  });
  const results = await Promise.allSettled(texts.map(send));
  expect(results.every(({ status }) => status === "rejected")).toBe(true);
  // Beside the two that were under way when the first was not answered, each once and alone.
  expect(sizes).toEqual(Array(2 + texts.length).fill(1));
});

it("refuses what comes behind 256 others", async () => {
  const { send } = createCall();
  const results = await Promise.allSettled(Array.from({ length: 300 }, (_, at) => send(`${at}`)));
  const refused = results.filter(({ status }) => status === "rejected");
  expect(refused).toHaveLength(300 - 256 - 2);
});
