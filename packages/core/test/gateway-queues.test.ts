import type { GatewayOptions } from "@tollgate/core";
import { definePolicy, permit } from "@tollgate/core/policy";
import { ProviderError } from "@tollgate/core/provider";
import { type Chat, createTestGateway, type TestGateway } from "@tollgate/testing";
import { describe, expect, it } from "vitest";
import { eventLog } from "./event-log.ts";
import { failureOf } from "./wire.ts";

/** A gateway that calls its provider once at a time, and holds every call. */
async function open(options: Parameters<typeof createTestGateway>[0] = {}) {
  const log = eventLog();
  const test = await createTestGateway({
    upstreams: { test: { concurrency: 1, queue: 2, queueWait: "5s" } },
    observers: log.observers,
    ...options,
  });
  const barrier = test.provider.hold();
  const ask = (content: string, init: RequestInit = {}, { chat } = { chat: test.chat }) => {
    const request = chat({ messages: [{ role: "user", content }], stream: true });
    return test.gateway.fetch(new Request(request, init)).then(async (answer) => {
      await answer.text();
      return answer.status;
    });
  };
  /** Asks, and waits until the Step is open: it then has its place, or is in the line. */
  let opened = 0;
  const asking = async (content: string, init?: RequestInit, key?: { readonly chat: Chat }) => {
    const answer = ask(content, init, key);
    await log.seeing("step.opened", ++opened);
    return { answer };
  };
  return { ...test, log, barrier, ask, asking };
}

const asked = ({ provider }: Pick<TestGateway, "provider">) =>
  provider.calls.map(({ request }) => request.messages[0]?.content);

const stepsOf = async ({ gateway, key }: Pick<TestGateway, "gateway" | "key">) =>
  (await gateway.steps.list({ organizationId: key.organizationId })).data;

describe("a gateway with a concurrency limit", () => {
  it("calls its provider in the order of the requests", async () => {
    const test = await open();
    const { answer: first } = await test.asking("first");
    const { answer: second } = await test.asking("second");
    const { answer: third } = await test.asking("third");
    await test.barrier.reached();
    expect(asked(test)).toEqual(["first"]);
    test.barrier.release();
    expect(await Promise.all([first, second, third])).toEqual([200, 200, 200]);
    expect(asked(test)).toEqual(["first", "second", "third"]);
  });

  it("declines a request when the line is full", async () => {
    const test = await open();
    const waiting = [await test.asking("1"), await test.asking("2"), await test.asking("3")];
    const answer = await test.gateway.fetch(test.chat());
    expect([answer.status, answer.headers.get("retry-after")]).toEqual([503, "1"]);
    expect(answer.headers.get("x-should-retry")).toBe("true");
    expect(await failureOf(answer)).toMatchObject({ type: "server_error", code: "overloaded" });
    expect((await stepsOf(test))[0]).toMatchObject({
      outcome: "failed",
      reason: "queue_full",
      costNanoUsd: 0,
    });
    test.barrier.release();
    expect(await Promise.all(waiting.map(({ answer }) => answer))).toEqual([200, 200, 200]);
  });

  it("gives its places to the keys in turns", async () => {
    const test = await open({ upstreams: { test: { concurrency: 1, queue: 10 } } });
    const other = await test.createKey();
    const third = await test.createKey();
    const flood = ["a1", "a2", "a3", "a4"];
    const waiting: Promise<number>[] = [];
    const add = async (content: string, key?: Parameters<typeof test.asking>[2]) =>
      waiting.push((await test.asking(content, {}, key)).answer);
    for (const content of flood) await add(content);
    for (const content of ["b1", "b2"]) await add(content, other);
    await add("c1", third);
    test.barrier.release();
    expect(new Set(await Promise.all(waiting))).toEqual(new Set([200]));
    expect(asked(test)).toEqual(["a1", "a2", "b1", "c1", "a3", "b2", "a4"]);
  });

  it("declines the oldest request of the key that waits with most when the line is full", async () => {
    const test = await open();
    const other = await test.createKey();
    const flood = [];
    for (const content of ["a1", "a2", "a3"]) flood.push((await test.asking(content)).answer);
    const { answer: b1 } = await test.asking("b1", {}, other);
    expect(await flood[1]).toBe(503);
    expect(await (await test.asking("b2", {}, other)).answer).toBe(503);
    expect(await (await test.asking("a4")).answer).toBe(503);
    test.barrier.release();
    expect(await Promise.all([flood[0], flood[2], b1])).toEqual([200, 200, 200]);
    expect(asked(test)).toEqual(["a1", "a3", "b1"]);
    const reasons = (await stepsOf(test)).map(({ reason }) => reason);
    expect(reasons.filter((reason) => reason === "queue_full")).toHaveLength(3);
  });

  it("declines a request that waited too long for a place", async () => {
    const test = await open();
    const { answer: running } = await test.asking("running");
    const late = test.gateway.fetch(test.chat());
    await test.log.seeing("step.opened", 2);
    const answer = await test.clock.until(late);
    expect(test.clock.monotonic()).toBe(5_000);
    expect([answer.status, answer.headers.get("retry-after")]).toEqual([503, "1"]);
    expect(await failureOf(answer)).toMatchObject({ code: "overloaded" });
    expect((await stepsOf(test))[0]).toMatchObject({ reason: "queue_timeout", costNanoUsd: 0 });
    expect(test.provider.calls).toHaveLength(1);
    test.barrier.release();
    expect(await running).toBe(200);
  });

  it("counts the time in the line as no silence of the provider", async () => {
    const test = await open({ deadlines: { firstByte: "6s" } });
    const { answer: first } = await test.asking("first");
    await test.clock.advance("2s");
    const { answer: second } = await test.asking("second");
    await test.clock.advance("4s");
    expect(await first).toBe(504);
    await test.clock.advance("5s");
    test.barrier.release();
    expect(await second).toBe(200);
  });

  it("takes a request whose client leaves out of the line", async () => {
    const test = await open();
    const { answer: running } = await test.asking("running");
    const client = new AbortController();
    const { answer: leaving } = await test.asking("leaving", { signal: client.signal });
    const { answer: staying } = await test.asking("staying");
    client.abort(new Error("gone"));
    await expect(leaving).rejects.toThrow("gone");
    await test.log.seeing("step.settled");
    const { answer: next } = await test.asking("next");
    test.barrier.release();
    expect(await Promise.all([running, staying, next])).toEqual([200, 200, 200]);
    expect(asked(test)).toEqual(["running", "staying", "next"]);
    const steps = await stepsOf(test);
    expect(steps.map(({ outcome, costNanoUsd }) => [outcome, costNanoUsd])).toContainEqual([
      "cancelled",
      0,
    ]);
  });

  it("gives the place of a request whose client leaves to the next one", async () => {
    const test = await open();
    const client = new AbortController();
    const { answer: leaving } = await test.asking("leaving", { signal: client.signal });
    leaving.catch(() => {});
    const { answer: next } = await test.asking("next");
    await test.barrier.reached();
    client.abort(new Error("gone"));
    await test.barrier.reached(2);
    test.barrier.release();
    expect(await next).toBe(200);
  });

  it("uses a fallback when the line is full, and never retries for a place", async () => {
    const policy = definePolicy({
      rules: [permit("all", {}, { fallbacks: ["spare/acme/mini"] })],
    });
    const test = await open({ policy, upstreams: { test: { concurrency: 1, queue: 0 } } });
    const { answer: running } = await test.asking("running");
    const { answer: other } = await test.asking("other");
    await test.barrier.reached(2);
    test.barrier.release();
    expect(await Promise.all([running, other])).toEqual([200, 200]);
    expect((await stepsOf(test))[0]?.attempts).toMatchObject([
      { model: "test/tollgate/scripted", reason: "queue_full" },
      { model: "spare/acme/mini", outcome: "completed" },
    ]);
  });

  it("keeps no place while a retry waits", async () => {
    const test = await open({ upstreams: { test: { concurrency: 1, queue: 0 } } });
    test.barrier.release();
    const details = { delivery: "answered", status: 503, retryAfterMs: 5_000 } as const;
    test.provider.fail(new ProviderError("Busy.", { reason: "busy", ...details }));
    const { answer: retried } = await test.asking("retried");
    await test.log.seeing("attempt.ended");
    const { answer: other } = await test.asking("other");
    expect(await other).toBe(200);
    expect(await test.clock.until(retried)).toBe(200);
    expect(asked(test)).toEqual(["retried", "other", "retried"]);
  });

  it("ends the requests in the line when it closes", async () => {
    const test = await open();
    const { answer: running } = await test.asking("running");
    const { answer: waiting } = await test.asking("waiting");
    await test.clock.until(test.gateway.close({ within: "4s" }));
    expect(await Promise.all([running, waiting])).toEqual([503, 503]);
    expect(test.provider.calls).toHaveLength(1);
  });

  it("drains a line whose calls all fail at once", async () => {
    const test = await open({
      upstreams: { test: { concurrency: 1, queue: 5_000 } },
      retries: { max: 0 },
    });
    const { answer: first } = await test.asking("first");
    await test.barrier.reached();
    const failing = new ProviderError("Down.", {
      reason: "down",
      delivery: "answered",
      status: 500,
    });
    test.provider.fail(failing, { times: 100 });
    const waiting = Array.from({ length: 100 }, (_, at) => test.ask(`${at}`));
    await test.log.seeing("step.opened", 101);
    test.barrier.release();
    expect(await first).toBe(200);
    expect(new Set(await Promise.all(waiting))).toEqual(new Set([502]));
  });
});

it("says at start which limit of an upstream is wrong", async () => {
  const problem = (upstreams: NonNullable<GatewayOptions["upstreams"]>) =>
    expect(createTestGateway({ upstreams })).rejects.toMatchObject({
      code: "invalid_configuration",
      message: expect.stringContaining("upstreams"),
    });
  await problem({ nowhere: { concurrency: 1 } });
  await problem({ test: { concurrency: 0 } });
  await problem({ test: { queue: 5 } });
  await problem({ test: { breaker: { ratio: 1.5 } } });
  await problem({ test: { breaker: { pause: 0 } } });
});
