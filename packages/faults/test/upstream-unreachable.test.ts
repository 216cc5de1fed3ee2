import { once } from "node:events";
import { createServer } from "node:net";
import { definePolicy, permit } from "@tollgate/core/policy";
import { openaiCompatible } from "@tollgate/provider-openai";
import { scriptedUpstream } from "@tollgate/testing";
import { expect, it, onTestFinished } from "vitest";
import { readAnswer, readStream } from "../src/read-answer.ts";
import {
  chunked,
  goodAnswer,
  goodEvents,
  lastChunk,
  streamHead,
  text,
} from "../src/upstream-bytes.ts";
import {
  answering,
  codeOf,
  endings,
  expectFailedStream,
  expectWhole,
  good,
  requestsArrived,
  startProduct,
} from "./fixture.ts";

const nothingUsed = { costNanoUsd: 0, usage: { totalTokens: 0 }, usageBasis: "reported" };
const estimated = { usageBasis: "estimated", priceSource: "custom" };

it("F1 retries a refused connection, and charges nothing if it stays refused", async () => {
  const closed = createServer();
  await once(closed.listen(0, "127.0.0.1"), "listening");
  const address = closed.address();
  const port = typeof address === "object" ? address?.port : 0;
  await new Promise((resolve) => closed.close(resolve));
  const product = await startProduct(good, {
    baseURL: `http://127.0.0.1:${port}/v1`,
    gateway: { retries: { max: 1, backoff: 1 } },
  });
  for (const stream of [false, true]) {
    const answer = await product.ask({ stream });
    expect(answer.status).toBe(502);
    expect(codeOf(answer)).toBe("upstream_error");
    expect(answer.headers["x-should-retry"]).toBe("true");
  }
  for (const step of [0, 1]) {
    const ends = await endings(product, step);
    expect(ends).toHaveLength(2);
    for (const end of ends)
      expect(end).toMatchObject({ ...nothingUsed, reason: "connection_refused" });
  }
  expect(await product.problems()).toEqual([]);
});

it("F1 tries the policy's fallback after a refused connection, and records each attempt", async () => {
  const other = await scriptedUpstream(good);
  onTestFinished(() => other.close());
  const product = await startProduct(good, {
    baseURL: "http://127.0.0.1:1/v1",
    gateway: {
      policy: definePolicy({
        rules: [permit("all", {}, { fallbacks: ["other/vendor/model"] })],
      }),
      providers: {
        other: openaiCompatible({
          baseURL: `${other.url}/v1`,
          apiKey: null,
          models: { "vendor/model": { input: "1", output: "2" } },
        }),
      },
    },
  });
  const answer = await product.ask({ stream: true });
  expect(readStream(answer)).toMatchObject({ text: "Hello there", finishReason: "stop" });
  expect(await endings(product)).toMatchObject([
    { ...nothingUsed, reason: "connection_refused" },
    { outcome: "completed", usageBasis: "reported", usage: { totalTokens: 15 } },
  ]);
  expect((await product.steps())[0]?.attempts.map(({ gateway }) => gateway)).toEqual([
    "up",
    "other",
  ]);
  expect(await product.problems()).toEqual([]);
});

/** The output tokens that a product's requests ask for. */
const held = 1_000;

it("F2 a request with an unknown outcome is not sent again, and its usage is estimated", async () => {
  for (const end of ["reset", "end"] as const) {
    const product = await startProduct((exchange) => exchange[end](), {
      gateway: { retries: { max: 2, backoff: 1 } },
    });
    const answer = await product.ask();
    expect(answer.status).toBe(502);
    expect(answer.headers["x-should-retry"]).toBe("false");
    expect(product.upstream.requests).toHaveLength(1);
    const [attempt, ...more] = await endings(product);
    expect(more).toEqual([]);
    expect(attempt).toMatchObject({ ...estimated, outcome: "failed" });
    expect(attempt?.usage.promptTokens).toBeGreaterThan(0);
    // No answer was seen: the Step is charged its hold.
    expect(attempt?.usage.completionTokens).toBe(held);
    await expectWhole(product);
  }
});

it("F2 a request with an unknown outcome is sent again if duplicates are allowed", async () => {
  const product = await startProduct(
    (exchange, number) =>
      number === 1 ? exchange.reset() : exchange.send(goodAnswer(exchange.body)),
    { gateway: { retries: { max: 2, backoff: 1, allowDuplicates: true } } },
  );
  expect((await product.ask()).status).toBe(200);
  expect(await endings(product)).toMatchObject([
    { ...estimated, outcome: "failed" },
    { outcome: "completed" },
  ]);
  await expectWhole(product);
});

it("F3 a host without a DNS name or TLS receives nothing and costs nothing", async () => {
  const speaker = createServer((socket) => socket.on("error", () => {}).end("220 hello\r\n"));
  await once(speaker.listen(0, "127.0.0.1"), "listening");
  onTestFinished(() => void speaker.close());
  const address = speaker.address();
  const port = typeof address === "object" ? address?.port : 0;
  for (const [baseURL, reason] of [
    [`http://${"x".repeat(64)}.invalid/v1`, "dns_failed"],
    [`https://127.0.0.1:${port}/v1`, "tls_failed"],
  ] as const) {
    const product = await startProduct(good, { baseURL });
    const answer = await product.ask({ stream: true });
    expect(answer.status).toBe(502);
    expect(answer.headers["x-should-retry"]).toBe("true");
    expect(await endings(product)).toMatchObject([{ ...nothingUsed, reason }]);
    expect(await product.problems()).toEqual([]);
  }
});

it("F4 an upstream that never completes a connection answers 504, receives nothing and costs nothing", async () => {
  const arrived = Promise.withResolvers<void>();
  const silent = createServer((socket) => {
    socket.on("error", () => {});
    arrived.resolve();
  });
  await once(silent.listen(0, "127.0.0.1"), "listening");
  onTestFinished(() => void silent.close());
  const address = silent.address();
  const port = typeof address === "object" ? address?.port : 0;
  const product = await startProduct(good, {
    baseURL: `https://127.0.0.1:${port}/v1`,
    gateway: { deadlines: { connect: "20s" } },
  });
  const answer = product.ask();
  await arrived.promise;
  product.clock.push(21_000);
  expect((await answer).status).toBe(504);
  expect((await answer).headers["x-should-retry"]).toBe("true");
  expect(await endings(product)).toMatchObject([{ ...nothingUsed, reason: "connect_timeout" }]);
  expect(await product.problems()).toEqual([]);
});

it("F4 a silent upstream answers 504 before the headers", async () => {
  const product = await startProduct(() => {}, {
    gateway: { deadlines: { plainAnswer: "100s" } },
  });
  const answer = product.ask();
  await requestsArrived(product);
  product.clock.push(101_000);
  expect((await answer).status).toBe(504);
  expect(await endings(product)).toMatchObject([{ ...estimated, reason: "silent" }]);
  await product.upstream.requests[0]?.closed;
  await expectWhole(product);
});

it("F4 by default a plain answer may take ten minutes, and a stream must begin within two", async () => {
  let answer = () => {};
  const product = await startProduct((exchange) => {
    answer = () => exchange.send(goodAnswer(exchange.body));
  });
  const plain = product.ask();
  await requestsArrived(product);
  product.clock.push(599_000);
  answer();
  expect((await plain).status).toBe(200);

  const stream = product.ask({ stream: true });
  await requestsArrived(product, 2);
  product.clock.push(121_000);
  expect((await stream).body).toContain("The provider stopped answering.");
});

it("F4 an upstream that falls silent in the middle of a body ends the stream with an error", async () => {
  const product = await startProduct(answering(streamHead + chunked(text("Half"))), {
    gateway: { deadlines: { idle: "50s" } },
  });
  const client = await product.post({ stream: true });
  await client.until("Half");
  product.clock.push(51_000);
  expectFailedStream(readAnswer(await client.ended()));
  await product.upstream.requests[0]?.closed;
  await expectWhole(product);
});

it("F4 the deadline of the request ends an endless answer", async () => {
  const product = await startProduct(answering(streamHead + chunked(text("Half"))), {
    gateway: { deadlines: { idle: "2h", total: "1h" } },
  });
  const answer = product.ask({ stream: false });
  await requestsArrived(product);
  product.clock.push(3_601_000);
  expect((await answer).status).toBe(504);
  expect(await endings(product)).toMatchObject([{ reason: "deadline" }]);
  await expectWhole(product);
});

it("F4 waits for a slow upstream that still sends", async () => {
  const go = Promise.withResolvers<void>();
  const product = await startProduct(async ({ send }) => {
    await send(streamHead);
    await go.promise;
    await send(chunked(goodEvents) + lastChunk);
  });
  const answer = product.ask({ stream: true });
  await requestsArrived(product);
  product.clock.push(59_000);
  go.resolve();
  expect((await answer).status).toBe(200);
  await expectWhole(product);
});
