import { gzipSync } from "node:zlib";
import { scriptedUpstream } from "@tollgate/testing";
import { expect, it, onTestFinished } from "vitest";
import { type Route, routes } from "../src/endpoints.ts";
import type { ReadAnswer } from "../src/read-answer.ts";
import { head, json } from "../src/upstream-bytes.ts";
import { answerTo } from "../src/upstream-wires.ts";
import { answering, endings, expectWhole, good, startProduct, waysOf } from "./fixture.ts";

/** Checks that an answer is the upstream's failure in its endpoint's own words. */
function expectUpstreamError(answer: ReadAnswer, { endpoint }: Route): void {
  expect(answer.status).toBe(502);
  expect(endpoint.read(answer.body).error).toMatchObject(endpoint.brokenOff.plain);
}

it.each(routes)(
  "F15 retries when the upstream asks for it, and each attempt has its own record: $name",
  async (route) => {
    for (const [status, header] of [
      [429, "retry-after: 0"],
      [500, "x-nothing: 1"],
      [502, "retry-after: garbage"],
      [503, "retry-after-ms: 1"],
      [529, "retry-after: Thu, 01 Jan 1970 00:00:00 GMT"],
    ] as const) {
      const product = await startProduct(
        (exchange, number) => {
          const refusal = json(status, { error: { message: "no" } }, header);
          return exchange.send(number < 3 ? refusal : answerTo(exchange));
        },
        { route, gateway: { retries: { max: 2, backoff: 1 } } },
      );
      expect((await product.ask()).status).toBe(200);
      expect(await endings(product)).toMatchObject([
        {
          outcome: "failed",
          reason: `status_${status}`,
          costNanoUsd: 0,
          usage: { totalTokens: 0 },
        },
        {
          outcome: "failed",
          reason: `status_${status}`,
          costNanoUsd: 0,
          usage: { totalTokens: 0 },
        },
        { outcome: "completed", usageBasis: "reported" },
      ]);
      await expectWhole(product);
    }
  },
);

it.each(routes)("F15 does not wait for a retry in ten years: $name", async (route) => {
  const product = await startProduct(answering(json(429, {}, "retry-after: 315360000")), {
    route,
    gateway: { retries: { max: 2, backoff: 1 } },
  });
  const answer = await product.ask(waysOf(route)[0]);
  expect(answer.status).toBe(429);
  expect(JSON.stringify(route.endpoint.read(answer.body).error)).toMatch(/"rate_limit_e/);
  expect(Number(answer.headers["retry-after"])).toBeGreaterThan(0);
  expect(product.upstream.requests).toHaveLength(1);
  await expectWhole(product);
});

it.each(routes)("F15 retries end at the deadline of the request: $name", async (route) => {
  const product = await startProduct(answering(json(503, {})), {
    route,
    gateway: { retries: { max: 1_000, backoff: 5_000 }, deadlines: { total: "60s" } },
  });
  const answer = product.ask();
  while ((await product.steps()).length === 0 || product.clock.timers() < 3)
    await new Promise(setImmediate);
  product.clock.push(61_000);
  expect((await answer).status).toBe(504);
  expect(await product.problems()).toEqual([]);
});

it.each(routes)(
  "F16 a 200 without a valid answer is never an empty success: $name",
  async (route) => {
    for (const bytes of [
      json(200, { error: { message: "no", code: "quota" } }),
      json(200, ""),
      json(200, "{"),
      json(200, { choices: [] }),
      json(200, { choices: [{ message: { content: "Hi" } }] }),
      json(200, { type: "message", content: [{ type: "text", text: "Hi" }], stop_reason: null }),
      json(200, { object: "list", data: [{ index: 0, embedding: [0.5] }] }),
      `${head("content-type: text/html", "content-length: 6")}<html>`,
      `${head("content-type: text/event-stream", "content-length: 0")}`,
    ])
      for (const fields of waysOf(route)) {
        const product = await startProduct(answering(bytes), { route });
        expectUpstreamError(await product.ask(fields), route);
        expect((await product.steps())[0]?.outcome).toBe("failed");
        await expectWhole(product);
      }
  },
);

it.each(routes)(
  "F18 a redirect is refused, and its target receives nothing (S7): $name",
  async (route) => {
    const canary = await scriptedUpstream(() => {});
    onTestFinished(() => canary.close());
    for (const status of [301, 302, 303, 307, 308]) {
      const product = await startProduct(
        answering(json(status, "", `location: ${canary.url}/v1`)),
        {
          route,
        },
      );
      const answer = await product.ask();
      expectUpstreamError(answer, route);
      expect(answer.body).not.toContain(canary.url);
      expect(await endings(product)).toMatchObject([{ reason: "redirect_refused" }]);
      await expectWhole(product);
    }
    expect(canary.connections.made).toBe(0);
  },
);

it.each(routes)(
  "F18 handles interim answers, a switch of protocols, 204 and an early 413: $name",
  async (route) => {
    const interim = "HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n";
    const few = await startProduct(
      (exchange) => exchange.send(interim.repeat(3) + answerTo(exchange)),
      { route },
    );
    expect((await few.ask()).status).toBe(200);
    await expectWhole(few);
    for (const [bytes, status] of [
      [interim.repeat(1_000), 502],
      ["HTTP/1.1 101 Switching\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n", 502],
      ["HTTP/1.1 204 Nothing\r\n\r\n", 502],
      ["HTTP/1.1 413 Too large\r\nconnection: close\r\ncontent-length: 0\r\n\r\n", 400],
    ] as const) {
      const product = await startProduct(answering(bytes), { route });
      expect((await product.ask()).status, bytes.slice(0, 20)).toBe(status);
      await expectWhole(product);
    }
  },
);

it.each(routes)(
  "F19 compression, large headers and contradictory framing fail with typed errors: $name",
  async (route) => {
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
      const product = await startProduct(({ send }) => send(bytes), { route });
      expectUpstreamError(await product.ask(), route);
      expect(product.upstream.requests[0]?.head).toContain("accept-encoding: identity");
      expect(await endings(product)).toMatchObject([{ outcome: "failed", reason }]);
      await expectWhole(product);
    }
  },
);

it.each(routes)("F16 a valid answer to the same requests is a success: $name", async (route) => {
  const product = await startProduct(good, { route });
  for (const fields of waysOf(route)) expect((await product.ask(fields)).status).toBe(200);
  await expectWhole(product);
});
