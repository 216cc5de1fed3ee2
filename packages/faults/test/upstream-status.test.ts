import { gzipSync } from "node:zlib";
import { scriptedUpstream } from "@tollgate/testing";
import { expect, it, onTestFinished } from "vitest";
import { goodAnswer, head, json } from "../src/upstream-bytes.ts";
import { answering, codeOf, endings, expectWhole, good, startProduct } from "./fixture.ts";

it("F15 retries when the upstream asks for it, and each attempt has its own record", async () => {
  for (const [status, header] of [
    [429, "retry-after: 0"],
    [500, "x-nothing: 1"],
    [502, "retry-after: garbage"],
    [503, "retry-after-ms: 1"],
    [529, "retry-after: Thu, 01 Jan 1970 00:00:00 GMT"],
  ] as const) {
    const product = await startProduct(
      ({ send, body }, number) =>
        send(number < 3 ? json(status, { error: { message: "no" } }, header) : goodAnswer(body)),
      { gateway: { retries: { max: 2, backoff: 1 } } },
    );
    expect((await product.ask()).status).toBe(200);
    expect(await endings(product)).toMatchObject([
      { outcome: "failed", reason: `status_${status}`, costNanoUsd: 0, usage: { totalTokens: 0 } },
      { outcome: "failed", reason: `status_${status}`, costNanoUsd: 0, usage: { totalTokens: 0 } },
      { outcome: "completed", usageBasis: "reported" },
    ]);
    await expectWhole(product);
  }
});

it("F15 does not wait for a retry in ten years", async () => {
  const product = await startProduct(answering(json(429, {}, "retry-after: 315360000")), {
    gateway: { retries: { max: 2, backoff: 1 } },
  });
  const answer = await product.ask({ stream: true });
  expect(answer.status).toBe(429);
  expect(codeOf(answer)).toBe("rate_limit_exceeded");
  expect(Number(answer.headers["retry-after"])).toBeGreaterThan(0);
  expect(product.upstream.requests).toHaveLength(1);
  await expectWhole(product);
});

it("F15 retries end at the deadline of the request", async () => {
  const product = await startProduct(answering(json(503, {})), {
    gateway: { retries: { max: 1_000, backoff: 5_000 }, deadlines: { total: "60s" } },
  });
  const answer = product.ask();
  while ((await product.steps()).length === 0 || product.clock.timers() < 3)
    await new Promise(setImmediate);
  product.clock.push(61_000);
  expect((await answer).status).toBe(504);
  expect(await product.problems()).toEqual([]);
});

it("F16 a 200 without a valid answer is never an empty success", async () => {
  for (const bytes of [
    json(200, { error: { message: "no", code: "quota" } }),
    json(200, ""),
    json(200, "{"),
    json(200, { choices: [] }),
    json(200, { choices: [{ message: { content: "Hi" } }] }),
    `${head("content-type: text/html", "content-length: 6")}<html>`,
    `${head("content-type: text/event-stream", "content-length: 0")}`,
  ])
    for (const stream of [true, false]) {
      const product = await startProduct(answering(bytes));
      const answer = await product.ask({ stream });
      expect(answer.status, bytes).toBe(502);
      expect(codeOf(answer)).toBe("upstream_error");
      expect((await product.steps())[0]?.outcome).toBe("failed");
      await expectWhole(product);
    }
});

it("F18 a redirect is refused, and its target receives nothing (S7)", async () => {
  const canary = await scriptedUpstream(() => {});
  onTestFinished(() => canary.close());
  for (const status of [301, 302, 303, 307, 308]) {
    const product = await startProduct(answering(json(status, "", `location: ${canary.url}/v1`)));
    const answer = await product.ask();
    expect(answer.status).toBe(502);
    expect(answer.body).not.toContain(canary.url);
    expect(await endings(product)).toMatchObject([{ reason: "redirect_refused" }]);
    await expectWhole(product);
  }
  expect(canary.connections.made).toBe(0);
});

it("F18 handles interim answers, a switch of protocols, 204 and an early 413", async () => {
  const interim = "HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n";
  const few = await startProduct(({ send, body }) => send(interim.repeat(3) + goodAnswer(body)));
  expect((await few.ask()).status).toBe(200);
  await expectWhole(few);
  for (const [bytes, status] of [
    [interim.repeat(1_000), 502],
    ["HTTP/1.1 101 Switching\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n", 502],
    ["HTTP/1.1 204 Nothing\r\n\r\n", 502],
    ["HTTP/1.1 413 Too large\r\nconnection: close\r\ncontent-length: 0\r\n\r\n", 400],
  ] as const) {
    const product = await startProduct(answering(bytes));
    expect((await product.ask()).status, bytes.slice(0, 20)).toBe(status);
    await expectWhole(product);
  }
});

it("F19 compression, large headers and contradictory framing fail with typed errors", async () => {
  const bomb = gzipSync(Buffer.alloc(1_000_000));
  const compressed = head(
    "content-type: application/json",
    "content-encoding: gzip",
    `content-length: ${bomb.length}`,
  );
  for (const [bytes, reason] of [
    [Buffer.concat([Buffer.from(compressed), bomb]), "unexpected_encoding"],
    [head(`x-large: ${"x".repeat(20_000)}`), "headers_too_large"],
    [head("content-length: 5", "transfer-encoding: chunked"), "invalid_http"],
  ] as const) {
    const product = await startProduct(({ send }) => send(bytes));
    expect((await product.ask()).status).toBe(502);
    expect(product.upstream.requests[0]?.head).toContain("accept-encoding: identity");
    expect(await endings(product)).toMatchObject([{ outcome: "failed", reason }]);
    await expectWhole(product);
  }
});

it("F16 a valid answer to the same requests is a success", async () => {
  const product = await startProduct(good);
  for (const stream of [true, false]) expect((await product.ask({ stream })).status).toBe(200);
  await expectWhole(product);
});
