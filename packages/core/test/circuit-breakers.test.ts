import { definePolicy, permit } from "@tollgate/core/policy";
import { type Delivery, ProviderError } from "@tollgate/core/provider";
import { createTestGateway, type TestGateway } from "@tollgate/testing";
import { describe, expect, it } from "vitest";
import { eventLog } from "./event-log.ts";
import { openOwnGateways } from "./own-gateways.ts";
import { stores } from "./stores.ts";
import { failureOf, streamed } from "./wire.ts";

interface Fault {
  readonly status?: number;
  readonly delivery?: Delivery;
  readonly code?: string;
}

const fault = ({ delivery = "answered", ...details }: Fault): ProviderError =>
  new ProviderError("The provider failed.", { reason: "fault", delivery, ...details });
const down = fault({ status: 503 });

const breaker = { failures: 3, ratio: 0.5, window: "30s", pause: "20s" } as const;

/** A gateway whose breaker opens at the third failure, without retries. */
async function open(options: Parameters<typeof createTestGateway>[0] = {}) {
  const log = eventLog();
  const test = await createTestGateway({
    upstreams: { test: { breaker } },
    retries: { max: 0 },
    observers: log.observers,
    ...options,
  });
  const changes = () =>
    log.seen.flatMap(({ type }) => (type.startsWith("breaker.") ? type.slice(8) : []));
  const ask = async (body = {}) => {
    const answer = await test.clock.until(test.gateway.fetch(test.chat(body)));
    await answer.text();
    return answer.status;
  };
  const askTimes = async (times: number) => {
    const seen: number[] = [];
    for (let asked = 0; asked < times; asked++) seen.push(await ask());
    return seen;
  };
  return { ...test, log, changes, ask, askTimes };
}

const stepsOf = async ({ gateway, key }: Pick<TestGateway, "gateway" | "key">) =>
  (await gateway.steps.list({ organizationId: key.organizationId })).data;

describe("a circuit breaker", () => {
  it.each(stores)(
    "declines calls of a model whose provider fails, and records it: %s",
    async (_, openStore) => {
      const test = await open({
        store: openStore(),
        budgets: [{ id: "usd", limit: { usd: 1 }, period: "day" }],
      });
      test.provider.fail(down, { times: 3 });
      expect(await test.askTimes(3)).toEqual([503, 503, 503]);
      expect(test.log.seen.filter(({ type }) => type.startsWith("breaker."))).toEqual([
        {
          type: "breaker.opened",
          at: expect.any(Number),
          model: "test/tollgate/scripted",
          organizationId: null,
        },
      ]);
      await test.clock.advance("5s");
      const answer = await test.gateway.fetch(test.chat());
      expect(answer.status).toBe(503);
      expect(answer.headers.get("retry-after")).toBe("15");
      expect(answer.headers.get("x-should-retry")).toBe("true");
      expect(await failureOf(answer)).toMatchObject({
        type: "server_error",
        code: "upstream_error",
      });
      expect(test.provider.calls).toHaveLength(3);
      const [step] = await stepsOf(test);
      expect(step).toMatchObject({
        outcome: "failed",
        reason: "breaker_open",
        costNanoUsd: 0,
        attempts: [{ number: 1, outcome: "failed", reason: "breaker_open", totalTokens: 0 }],
      });
      expect((await test.gateway.budgets.status({ id: "usd" })).data).toMatchObject([
        { settled: 0, held: 0 },
      ]);
    },
  );

  it("declines only the organization whose own account fails", async () => {
    const log = eventLog();
    const upstreams = { own: { breaker } };
    const test = await openOwnGateways({ upstreams, observers: log.observers });
    const { connections } = test.gateway;
    const other = await test.createKey({ organizationId: "globex" });
    const model = "own/a/b";
    for (const organizationId of [test.key.organizationId, "globex"])
      await connections.set({ organizationId, gateway: "own", apiKey: `sk-${organizationId}` });
    test.upstream.fail(down, { times: 4, when: ({ credential }) => credential === "sk-globex" });
    const ask = async (chat: typeof test.chat) => {
      const answer = await test.gateway.fetch(chat({ model }));
      await answer.text();
      return answer.status;
    };
    for (let asked = 0; asked < 4; asked++) expect(await ask(other.chat)).toBe(503);
    expect(test.credentials()).toHaveLength(3);
    expect(await ask(test.chat)).toBe(200);
    expect(log.seen.filter(({ type }) => type === "breaker.opened")).toMatchObject([
      { model, organizationId: "globex" },
    ]);
    await test.clock.advance("20s");
    expect(await ask(other.chat)).toBe(503);
    expect(test.credentials()).toHaveLength(5);
  });

  it("lets one call through after its pause, and closes when that is answered", async () => {
    const test = await open();
    test.provider.fail(down, { times: 3 });
    await test.askTimes(3);
    await test.clock.advance("20s");
    const barrier = test.provider.hold();
    const probe = test.gateway.fetch(test.chat());
    await barrier.reached();
    expect(test.changes()).toEqual(["opened", "half_opened"]);
    const other = await test.gateway.fetch(test.chat());
    expect([other.status, other.headers.get("retry-after")]).toEqual([503, "1"]);
    barrier.release();
    expect((await probe).status).toBe(200);
    expect(test.changes()).toEqual(["opened", "half_opened", "closed"]);
    expect(await test.askTimes(2)).toEqual([200, 200]);
  });

  it("opens again if the call after its pause fails", async () => {
    const test = await open();
    test.provider.fail(down, { times: 4 });
    await test.askTimes(3);
    await test.clock.advance("20s");
    expect(await test.askTimes(2)).toEqual([503, 503]);
    expect(test.provider.calls).toHaveLength(4);
    await test.clock.advance("19s");
    await test.ask();
    expect(test.provider.calls).toHaveLength(4);
    await test.clock.advance("1s");
    expect(await test.ask()).toBe(200);
    expect(test.changes()).toEqual(["opened", "half_opened", "opened", "half_opened", "closed"]);
  });

  it("lets another call through if the client of the first one leaves", async () => {
    const test = await open();
    test.provider.fail(down, { times: 3 });
    await test.askTimes(3);
    await test.clock.advance("20s");
    const barrier = test.provider.hold();
    const client = new AbortController();
    const chat = test.chat({ stream: true });
    const probe = test.gateway.fetch(new Request(chat, { signal: client.signal }));
    probe.catch(() => {});
    await barrier.reached();
    client.abort(new Error("gone"));
    await test.log.seeing("step.settled", 4);
    barrier.release();
    expect(await test.ask()).toBe(200);
    expect(test.changes()).toEqual(["opened", "half_opened", "half_opened", "closed"]);
  });

  it("closes at the first output of a stream, not at its end", async () => {
    const test = await open();
    test.provider.fail(down, { times: 3 });
    await test.askTimes(3);
    await test.clock.advance("20s");
    const barrier = test.provider.hold({ afterEvents: 2 });
    const probe = streamed(test.gateway.fetch(test.chat({ stream: true })));
    await barrier.reached();
    expect(test.changes()).toEqual(["opened", "half_opened", "closed"]);
    barrier.release();
    await probe;
  });

  it("doesn't affect other models of the gateway", async () => {
    const test = await open();
    test.provider.fail(down, { times: 3 });
    await test.askTimes(3);
    expect(await test.ask({ model: "test/acme/other" })).toBe(200);
    expect(await test.ask()).toBe(503);
  });

  it("stays closed as long as enough calls are answered", async () => {
    const test = await open();
    test.provider.fail(down);
    await test.ask();
    for (let round = 0; round < 5; round++) {
      test.provider.reply("OK", { times: 2 });
      test.provider.fail(down);
      await test.askTimes(3);
    }
    expect(test.changes()).toEqual([]);
  });

  it("forgets failures after its window", async () => {
    const test = await open();
    test.provider.fail(down, { times: 4 });
    await test.askTimes(2);
    await test.clock.advance("31s");
    await test.askTimes(2);
    expect(test.changes()).toEqual([]);
  });

  const counted: readonly (readonly [string, Fault])[] = [
    ["a provider that can't be reached", { delivery: "not-sent" }],
    ["a broken connection", { delivery: "unknown" }],
    ["500", { status: 500 }],
    ["529", { status: 529 }],
    ["an overload without its status", { status: 200, code: "overloaded_error" }],
  ];
  const ignored: readonly (readonly [string, Fault])[] = [
    ["400", { status: 400 }],
    ["401", { status: 401 }],
    ["404", { status: 404 }],
    ["429", { status: 429 }],
    ["an answer that is too large", { delivery: "unknown", status: 200 }],
  ];

  it.each(counted)("counts %s", async (_, details) => {
    const test = await open();
    test.provider.fail(fault(details), { times: 3 });
    await test.askTimes(3);
    expect(test.changes()).toEqual(["opened"]);
  });

  it.each(ignored)("doesn't count %s", async (_, details) => {
    const test = await open();
    test.provider.fail(fault(details), { times: 4 });
    await test.askTimes(4);
    expect(test.changes()).toEqual([]);
    expect(test.provider.calls).toHaveLength(4);
  });

  it("counts a provider that is silent, whichever deadline ends the wait", async () => {
    for (const deadlines of [{ firstByte: "1s" }, { total: "1s" }] as const) {
      const test = await open({ deadlines });
      test.provider.hold();
      for (let asked = 0; asked < 3; asked++) await test.ask({ stream: true });
      expect(test.changes()).toEqual(["opened"]);
    }
  });

  it("doesn't count clients that leave", async () => {
    const test = await open();
    const barrier = test.provider.hold();
    for (let asked = 1; asked <= 4; asked++) {
      const client = new AbortController();
      const chat = test.chat({ stream: true });
      test.gateway.fetch(new Request(chat, { signal: client.signal })).catch(() => {});
      await barrier.reached(asked);
      client.abort(new Error("gone"));
      await test.log.seeing("step.settled", asked);
    }
    expect(test.changes()).toEqual([]);
  });

  it("sends its model's calls to their fallback, and skips a fallback with an open breaker", async () => {
    const fallbacks = ["test/acme/second", "test/acme/third"] as const;
    const test = await open({
      policy: definePolicy({ rules: [permit("all", {}, { fallbacks })] }),
      gateways: ["test"],
    });
    const isOf = (...models: string[]) => ({
      when: ({ model }: { readonly model: string }) => models.includes(model),
      times: 3,
    });
    test.provider.fail(down, isOf("tollgate/scripted"));
    test.provider.fail(down, isOf("acme/second"));
    expect(await test.askTimes(4)).toEqual([200, 200, 200, 200]);
    const [last] = await stepsOf(test);
    expect(last?.attempts.map(({ model, reason }) => [model, reason])).toEqual([
      ["test/tollgate/scripted", "breaker_open"],
      ["test/acme/third", null],
    ]);
    expect(test.changes()).toEqual(["opened", "opened"]);
  });

  it("ends the retries of the call that opened it", async () => {
    const test = await open({ retries: { max: 9 } });
    test.provider.fail(down, { times: 9 });
    expect(await test.ask()).toBe(503);
    expect(test.provider.calls).toHaveLength(3);
    const [step] = await stepsOf(test);
    expect(step?.attempts).toHaveLength(3);
  });
});
