import { expect, it } from "vitest";
import { chatRoute } from "../src/endpoints.ts";
import { readAnswer, readStream } from "../src/read-answer.ts";
import { startProcesses } from "./process-fixture.ts";

it("F52 SIGTERM in the middle of a stream ends it with an error, settles its Step and exits with 0 (H6)", async () => {
  const product = await startProcesses();
  const stopped = await product.start();
  const client = await product.post(stopped, { stream: true }, [], chatRoute);
  await client.until("Half of it");
  expect(await stopped.stop()).toBe(0);
  const { error, done, finishReason } = readStream(readAnswer(await client.ended()));
  expect(error).toMatchObject({ code: "overloaded" });
  expect([done, finishReason]).toEqual([true, null]);
  expect(await product.steps()).toMatchObject([{ outcome: "failed", reason: "gateway_closed" }]);
  expect(await product.problems()).toEqual([]);
});
