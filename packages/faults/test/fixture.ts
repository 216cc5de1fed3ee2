import { setImmediate as nextTurn } from "node:timers/promises";
import type { Attempt, AttemptEnd } from "@tollgate/core/store";
import { expect, onTestFinished } from "vitest";
import { type Endpoint, embeddings, type Route } from "../src/endpoints.ts";
import { openProduct, type Product, type ProductOptions } from "../src/product.ts";
import { type ReadAnswer, readStream } from "../src/read-answer.ts";
import { chunked, lastChunk, streamHead } from "../src/upstream-bytes.ts";
import { answerTo } from "../src/upstream-wires.ts";

export type Script = Parameters<typeof openProduct>[0];

/** A product that is closed when the test ends. */
export async function startProduct(script: Script, options?: ProductOptions): Promise<Product> {
  const opened = await openProduct(script, options);
  onTestFinished(() => opened.close());
  return opened;
}

/** An upstream that answers every request with these bytes and keeps the connection open. */
export const answering =
  (bytes: string): Script =>
  ({ send }) =>
    send(bytes);

/** An upstream that streams these events in one piece and ends the answer correctly. */
export const streaming = (events: string): Script => answering(streamed(events));

/** An upstream that answers its requests with these bytes, one after the other. */
export const inTurn =
  (answers: readonly string[]): Script =>
  ({ send }, number) =>
    send(answers[number - 1] ?? "");

/** A complete stream of these events. */
export const streamed = (events: string): string => streamHead + chunked(events) + lastChunk;

/** The fields of a streamed and of a plain request. Embeddings have no such field. */
export const waysOf = ({ endpoint }: Route): readonly { readonly stream?: boolean }[] =>
  endpoint === embeddings ? [{}] : [{ stream: true }, { stream: false }];

/** An upstream that answers correctly. */
export const good = (exchange: Parameters<Script>[0]) => exchange.send(answerTo(exchange));

/** Resolves when this many requests have reached the upstream. */
export async function requestsArrived({ upstream }: Product, requests = 1): Promise<void> {
  while (upstream.requests.length < requests) await nextTurn();
}

/** Resolves when a count has not changed for a tenth of a second: the system's buffers are full. */
export async function standsStill(count: () => number): Promise<void> {
  for (let before = -1; before !== count(); ) {
    before = count();
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

/** The outcomes of the first Step's attempts, in order. */
export async function endings(product: Product, step = 0): Promise<readonly AttemptEnd[]> {
  const attempts: readonly Attempt[] = (await product.steps())[step]?.attempts ?? [];
  return attempts.flatMap(({ end }) => end ?? []);
}

/**
 * Checks that hold after every row of the matrix: one usage record for each Step, no holds, complete evidence, no
 * leaked resources.
 */
export async function expectWhole(product: Product): Promise<void> {
  expect(await product.problems()).toEqual([]);
  product.heal();
  const next = await product.ask();
  expect(next.status).toBe(200);
  expect(next.whole).toBe(true);
  expect(await product.problems()).toEqual([]);
  // One connection may be kept. Broken ones are closed.
  while (product.upstream.connections.open > 1) await closing(product);
  expect(product.clock.timers()).toBeLessThanOrEqual(lastingTimers);
}

/** The timers of the lease and of the keys' last use. */
const lastingTimers = 2;

function closing({ upstream }: Product): Promise<unknown> {
  return Promise.any(upstream.requests.slice(0, -1).map(({ closed }) => closed));
}

/** Checks a stream that failed after its headers: an error, then `[DONE]`, and no invented finish reason. */
export function expectFailedStream(answer: ReadAnswer, code = "upstream_error"): void {
  const { error, done, finishReason } = readStream(answer);
  expect(answer.status).toBe(200);
  expect(error).toMatchObject({ code });
  expect(finishReason).toBeNull();
  expect(done).toBe(true);
}

/** Checks that an answer broke off as its endpoint says it, streamed or plain, and returns its text. */
export function expectBrokenOff(answer: ReadAnswer, { brokenOff, read }: Endpoint): string {
  const streams = answer.headers["content-type"]?.startsWith("text/event-stream") === true;
  const { text, error, isComplete, isEnded } = read(answer.body);
  expect(answer.status).toBe(streams ? 200 : 502);
  expect(error).toMatchObject(streams ? brokenOff.streamed : brokenOff.plain);
  expect({ isComplete, isEnded }).toEqual({ isComplete: false, isEnded: true });
  return text;
}

/** The code of a plain error. */
export function codeOf(answer: ReadAnswer): unknown {
  return JSON.parse(answer.body).error.code;
}
