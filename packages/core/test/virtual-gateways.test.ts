import { virtual } from "@tollgate/core";
import { combine, definePolicy, forbid, permit } from "@tollgate/core/policy";
import { ProviderError } from "@tollgate/core/provider";
import { memoryStore } from "@tollgate/store-memory";
import { countingIds, createTestGateway, type TestGateway } from "@tollgate/testing";
import { describe, expect, it, vi } from "vitest";
import { z } from "zod";
import { eventLog } from "./event-log.ts";
import { openOwnGateways } from "./own-gateways.ts";
import { stores } from "./stores.ts";
import { completionOf, failureOf } from "./wire.ts";

const down = new ProviderError("Down.", { reason: "down", delivery: "answered", status: 503 });
const prices = {
  "one/a/x": { input: 1, output: 1 },
  "two/b/y": { input: 2, output: 2 },
  "three/c/z": { input: 3, output: 3 },
};
const all = ["one/a/x", "two/b/y", "three/c/z"];

/** A virtual gateway `best` over three gateways of one model each. */
async function open(
  models: Parameters<typeof virtual>[0] = { fast: all },
  options: Parameters<typeof createTestGateway>[0] = {},
) {
  const log = eventLog();
  const test = await createTestGateway({
    gateways: ["one", "two", "three"],
    providers: { best: virtual(models) },
    prices,
    retries: { max: 0 },
    observers: log.observers,
    ...options,
  });
  const ask = (content: string | readonly object[] = "Hi", model = "best/any/fast") => {
    const messages = typeof content === "string" ? [{ role: "user", content }] : content;
    return test.clock.until(test.gateway.fetch(test.chat({ model, messages })));
  };
  const called = () => test.provider.calls.map(({ gateway }) => gateway);
  return { ...test, log, ask, called };
}

async function records({ gateway, key: { organizationId } }: Pick<TestGateway, "gateway" | "key">) {
  const { data: steps } = await gateway.steps.list({ organizationId });
  const { data: decisions } = await gateway.decisions.list({ organizationId });
  return { step: steps[0], decisions: decisions.toReversed() };
}

describe("a virtual gateway", () => {
  it.each(stores)(
    "decides, prices and records its target under its own id: %s",
    async (_, openStore) => {
      const test = await open(undefined, {
        store: openStore(),
        policy: definePolicy({ rules: [permit("all", {})] }),
        budgets: [{ id: "one", scope: { gateway: "one" }, limit: { usd: 1 }, period: "day" }],
      });
      const answer = await test.ask();
      expect(answer.headers.get("x-service-model")).toBe("one/a/x");
      expect((await completionOf(answer.clone())).model).toBe("best/any/fast");
      const { step, decisions } = await records(test);
      expect(step).toMatchObject({
        requestedModel: "best/any/fast",
        model: "one/a/x",
        decisionId: decisions[0]?.id,
        costNanoUsd: 15_000,
      });
      expect(decisions).toMatchObject([
        {
          effect: "permit",
          facts: { gateway: "one", vendor: "a", model: "x" },
          choice: {
            requested: "best/any/fast",
            virtual: "best/any/fast",
            by: "order",
            latencyMs: null,
            passedOver: [],
          },
        },
      ]);
      expect((await test.gateway.budgets.status({ id: "one" })).data).toMatchObject([
        { settled: 15_000, held: 0 },
      ]);
      const id = decisions[0]?.id ?? "";
      const { organizationId } = test.key;
      expect(await test.gateway.decisions.get({ organizationId, id })).toEqual(decisions[0]);
    },
  );

  it.each(stores)(
    "passes over targets that are denied or can't be afforded, with reasons: %s",
    async (_, openStore) => {
      const test = await open(undefined, {
        store: openStore(),
        policy: definePolicy({ rules: [permit("all", {}), forbid("not-one", { gateway: "one" })] }),
        budgets: [{ id: "two", scope: { model: "two/*/*" }, limit: { usd: 0 }, period: "day" }],
      });
      const answer = await test.ask();
      expect(answer.headers.get("x-service-model")).toBe("three/c/z");
      expect(test.called()).toEqual(["three"]);
      const { step, decisions } = await records(test);
      const [denied, refused, permitted] = decisions;
      expect(denied).toMatchObject({ effect: "deny", rules: ["not-one"], firstDecisionId: null });
      expect(refused).toMatchObject({
        effect: "permit",
        refusal: { by: "budget", budgetId: "two" },
        firstDecisionId: denied?.id,
      });
      expect(permitted).toMatchObject({
        firstDecisionId: denied?.id,
        choice: {
          passedOver: [
            { model: "one/a/x", reason: "policy", decisionId: denied?.id },
            { model: "two/b/y", reason: "budget", decisionId: refused?.id },
          ],
        },
      });
      expect(step?.attempts).toHaveLength(1);
      expect(step?.decisionId).toBe(permitted?.id);
      expect(answer.headers.get("x-service-policy-decision-id")).toBe(permitted?.id);
      expect(test.log.seen.filter(({ type }) => type === "request.denied")).toEqual([]);
    },
  );

  it("answers with the first refusal if every target is refused", async () => {
    const test = await open(undefined, {
      policy: definePolicy({
        rules: [permit("all", {}), forbid("not-two", { gateway: ["two", "three"] })],
      }),
      budgets: [{ id: "one", scope: { gateway: "one" }, limit: { usd: 0 }, period: "day" }],
    });
    const answer = await test.ask();
    expect(answer.status).toBe(429);
    expect((await failureOf(answer.clone())).code).toBe("budget_exceeded");
    const { decisions } = await records(test);
    expect(decisions.map(({ facts }) => facts.gateway)).toEqual(["one", "two", "three"]);
    expect(answer.headers.get("x-service-policy-decision-id")).toBe(decisions[0]?.id);
    expect(test.log.seen.filter(({ type }) => type === "request.denied")).toMatchObject([
      { code: "budget_exceeded", decisionId: decisions[0]?.id },
    ]);
  });

  it.each([
    ["before it answers", ["one", "two", "three"], 403],
    ["before it opens the Step of another", ["one", "two"], 200],
  ] as const)(
    "records the targets that the policy denies at once, %s",
    async (_, denied, status) => {
      const verbs: string[] = [];
      const recording = Promise.withResolvers<void>();
      const store = memoryStore();
      const test = await open(undefined, {
        policy: definePolicy({ rules: [permit("all"), forbid("no", { gateway: denied })] }),
        store: {
          ...store,
          async recordRefusal(refusal) {
            verbs.push("recordRefusal");
            await recording.promise;
            return store.recordRefusal(refusal);
          },
          openStep(intent) {
            verbs.push("openStep");
            return store.openStep(intent);
          },
        },
      });
      const recorded = denied.map(() => "recordRefusal");
      const asking = test.gateway.fetch(test.chat({ model: "best/any/fast" }));
      await vi.waitFor(() => expect(verbs).toEqual(recorded));
      await new Promise((resolve) => setImmediate(resolve));
      expect(verbs).toEqual(recorded);
      recording.resolve();
      expect((await asking).status).toBe(status);
      expect(verbs).toEqual(status === 200 ? [...recorded, "openStep"] : recorded);
      const { decisions } = await records(test);
      expect(decisions.map(({ firstDecisionId }) => firstDecisionId)).toEqual([
        null,
        ...decisions.slice(1).map(() => decisions[0]?.id),
      ]);
    },
  );

  it("respects the allowlist of a key for each target", async () => {
    const test = await open();
    const { chat } = await test.createKey({ models: ["two/*/*"] });
    const answer = await test.gateway.fetch(chat({ model: "best/any/fast" }));
    expect(answer.headers.get("x-service-model")).toBe("two/b/y");
    const { chat: none } = await test.createKey({ models: ["best/any/fast"] });
    expect((await test.gateway.fetch(none({ model: "best/any/fast" }))).status).toBe(403);
  });

  it("moves to the next target when one fails, then to the fallbacks of the policy", async () => {
    const test = await open(
      { fast: ["one/a/x", "two/b/y"] },
      { policy: definePolicy({ rules: [permit("all", {}, { fallbacks: ["three/c/z"] })] }) },
    );
    test.provider.fail(down, { times: 2 });
    expect((await test.ask()).status).toBe(200);
    const { step, decisions } = await records(test);
    expect(step?.attempts.map(({ model, outcome }) => [model, outcome])).toEqual([
      ["one/a/x", "failed"],
      ["two/b/y", "failed"],
      ["three/c/z", "completed"],
    ]);
    expect(decisions.map(({ choice }) => choice?.passedOver.map(({ reason }) => reason))).toEqual([
      [],
      ["down"],
      undefined,
    ]);
  });

  it("moves past a target with an open breaker, and says so", async () => {
    const breaker = { failures: 1 };
    const test = await open(undefined, { upstreams: { one: { breaker }, two: { breaker } } });
    test.provider.fail(down);
    await test.ask();
    expect((await test.ask()).headers.get("x-service-model")).toBe("two/b/y");
    const { step, decisions } = await records(test);
    expect(step?.attempts).toHaveLength(1);
    expect(decisions.at(-1)?.choice?.passedOver).toEqual([
      { model: "one/a/x", reason: "breaker_open", decisionId: null },
    ]);
    expect(test.called()).toEqual(["one", "two", "two"]);
  });

  it("draws targets by their weights", async () => {
    const test = await open({
      fast: {
        by: "weight",
        targets: [{ model: "one/a/x", weight: 9 }, "two/b/y"],
      },
    });
    for (let asked = 0; asked < 100; asked++) await (await test.ask()).text();
    const ones = test.called().filter((gateway) => gateway === "one").length;
    expect(ones).toBeGreaterThan(75);
    expect(ones).toBeLessThan(100);
  });

  it("prefers the target that answered soonest, and tries the others again later", async () => {
    const test = await open({ fast: { by: "latency", targets: all } });
    const delays: Record<string, number> = { one: 300, two: 100, three: 200 };
    test.provider.reply(({ gateway }) => ({ text: "OK", delay: delays[gateway] ?? 0 }), {
      times: Number.POSITIVE_INFINITY,
    });
    for (let asked = 0; asked < 5; asked++) await (await test.ask()).text();
    expect(test.called()).toEqual(["one", "two", "three", "two", "two"]);
    const { decisions } = await records(test);
    expect(decisions.map(({ choice }) => choice?.latencyMs)).toEqual([null, null, null, 100, 100]);
    delays["two"] = 5_000;
    for (let asked = 0; asked < 2; asked++) await (await test.ask()).text();
    expect(test.called().slice(5)).toEqual(["two", "three"]);
    await test.clock.advance("5m");
    await (await test.ask()).text();
    expect(test.called().at(-1)).toBe("one");
  });

  it.each([false, true])(
    "measures an answer without output until its end (stream: %s)",
    async (stream) => {
      const test = await open({ fast: { by: "latency", targets: all } });
      const delays: Record<string, number> = { one: 300, two: 100, three: 200 };
      test.provider.reply(({ gateway }) => ({ text: [], delay: delays[gateway] ?? 0 }), {
        times: Number.POSITIVE_INFINITY,
      });
      for (let asked = 0; asked < 5; asked++) {
        const request = test.chat({ model: "best/any/fast", stream });
        await test.clock.until(test.gateway.fetch(request).then((answer) => answer.text()));
      }
      expect(test.called()).toEqual(["one", "two", "three", "two", "two"]);
      const { decisions } = await records(test);
      expect(decisions.map(({ choice }) => choice?.latencyMs)).toEqual([
        null,
        null,
        null,
        100,
        100,
      ]);
    },
  );

  it.each([401, 404, 429, 503])(
    "doesn't prefer a target because it fails fast, with %i",
    async (status) => {
      const test = await open({ fast: { by: "latency", targets: ["one/a/x", "two/b/y"] } });
      const failing = new ProviderError("No.", { reason: "no", delivery: "answered", status });
      test.provider.fail(failing, { when: ({ gateway }) => gateway === "one", times: 9 });
      test.provider.reply({ text: "OK", delay: 400 }, { times: Number.POSITIVE_INFINITY });
      for (let asked = 0; asked < 3; asked++) await (await test.ask()).text();
      expect(test.called()).toEqual(["one", "two", "two", "two"]);
    },
  );

  it("measures an organization's own account apart from those of others", async () => {
    const best = virtual({ fast: { by: "latency", targets: ["own/a/b", "spare/a/b"] } });
    const test = await openOwnGateways({ providers: { best } });
    const other = await test.createKey({ organizationId: "globex" });
    for (const organizationId of [test.key.organizationId, "globex"])
      for (const gateway of ["own", "spare"])
        await test.gateway.connections.set({ organizationId, gateway, apiKey: organizationId });
    test.upstream.fail(down, { when: ({ credential }) => credential === "globex" });
    const served = async (chat: typeof test.chat) => {
      const answer = await test.gateway.fetch(chat({ model: "best/any/fast" }));
      await answer.text();
      return answer.headers.get("x-service-model");
    };
    const own: (string | null)[] = [];
    const others: (string | null)[] = [];
    for (let asked = 0; asked < 3; asked++) {
      others.push(await served(other.chat));
      own.push(await served(test.chat));
    }
    expect(others).toEqual(["spare/a/b", "spare/a/b", "spare/a/b"]);
    expect(own).toEqual(["own/a/b", "spare/a/b", "own/a/b"]);
  });

  it("sends only one call to find out a latency", async () => {
    const test = await open({ fast: { by: "latency", targets: all } });
    const barrier = test.provider.hold();
    const asked: Promise<Response>[] = [];
    for (let calls = 1; calls <= 5; calls++) {
      asked.push(test.gateway.fetch(test.chat({ model: "best/any/fast" })));
      await barrier.reached(calls);
    }
    expect(test.called()).toEqual(["one", "two", "three", "one", "one"]);
    barrier.release();
    await Promise.all(asked);
  });

  it("still tries a target whose latency a refused, replayed, rejected or left call didn't find out", async () => {
    const test = await open({ fast: { by: "latency", targets: ["one/a/x", "two/b/y"] } });
    const model = "best/any/fast";
    const served = async () => (await test.ask()).headers.get("x-service-model");
    const denied = await test.createKey({ organizationId: "other", models: ["three/*/*"] });
    const fetched = await test.gateway.fetch(denied.chat({ model }));
    expect(fetched.status).toBe(403);
    const bad = { reason: "status_400", delivery: "answered", status: 400 } as const;
    test.provider.fail(new ProviderError("Bad.", bad));
    expect((await test.ask()).status).toBe(400);
    const barrier = test.provider.hold();
    const client = new AbortController();
    const request = test.chat({ model, stream: true });
    const left = test.gateway.fetch(new Request(request, { signal: client.signal }));
    await barrier.reached();
    client.abort();
    await left.then((answer) => answer.text()).catch(() => {});
    barrier.release();
    const again = () => test.gateway.fetch(test.chat({ model }, { "idempotency-key": "a" }));
    expect((await again()).headers.get("x-service-model")).toBe("one/a/x");
    expect(await served()).toBe("two/b/y");
    await test.clock.advance("5m");
    await test.clock.advance("1s");
    expect((await again()).headers.get("idempotency-replayed")).toBe("true");
    expect(await served()).toBe("one/a/x");
    const streamed = await test.gateway.fetch(test.chat({ model, stream: true }));
    expect(streamed.headers.get("x-service-model")).toBe("one/a/x");
    await streamed.text();
  });

  it.each(stores)("keeps a Session at its target, in every process: %s", async (_, openStore) => {
    const store = openStore();
    const models = { fast: { by: "session", targets: all } } as const;
    const first = await open(models, { store });
    const second = await open(models, { store, ids: countingIds(1) });
    const processes = [first.gateway, second.gateway];
    const used = new Set<string>();
    for (let session = 0; session < 24; session++) {
      const messages: object[] = [{ role: "user", content: `Session ${session}` }];
      const targets = new Set<string | null>();
      for (let turn = 0; turn < 3; turn++) {
        const gateway = processes[turn % 2] ?? first.gateway;
        const answer = await gateway.fetch(first.chat({ model: "best/any/fast", messages }));
        targets.add(answer.headers.get("x-service-model"));
        const { message } = (await completionOf(answer)).choices[0];
        messages.push(
          { role: "assistant", content: message.content },
          { role: "user", content: "On" },
        );
      }
      expect(targets.size).toBe(1);
      for (const target of targets) used.add(target ?? "");
    }
    expect(used.size).toBe(3);
  });

  it("is listed with the models that a key can call", async () => {
    const test = await open({ fast: ["one/a/x"], other: ["two/b/y"] });
    const { key } = await test.createKey({ models: ["two/*/*"] });
    const ids = async (secret: string) => {
      const headers = { authorization: `Bearer ${secret}` };
      const answer = await test.gateway.fetch("http://in-process/v1/models", { headers });
      const { data } = z
        .object({ data: z.array(z.object({ id: z.string() })) })
        .parse(await answer.json());
      return data.map(({ id }) => id).filter((id) => id.startsWith("best/"));
    };
    expect(await ids(test.key.secret)).toEqual(["best/any/fast", "best/any/other"]);
    expect(await ids(key.secret)).toEqual(["best/any/other"]);
    const headers = { authorization: `Bearer ${key.secret}` };
    const one = (id: string) =>
      test.gateway
        .fetch(`http://in-process/v1/models/${id}`, { headers })
        .then(({ status }) => status);
    expect(await one("best/any/other")).toBe(200);
    expect(await one("best/any/fast")).toBe(404);
  });

  it("has no other models", async () => {
    const test = await open();
    expect((await test.ask("Hi", "best/any/slow")).status).toBe(404);
    expect((await test.ask("Hi", "best/a/fast")).status).toBe(404);
  });
});

describe("a mistake in a virtual gateway", () => {
  const problemsOf = async (
    models: Parameters<typeof virtual>[0],
    options: Parameters<typeof createTestGateway>[0] = {},
  ) => {
    try {
      await open(models, options);
      return "";
    } catch (error) {
      return error instanceof Error ? error.message : "";
    }
  };

  it.each([
    ["leads any/fast to nowhere/a/b, which no gateway has", { fast: ["nowhere/a/b"] }],
    ["leads any/fast to best/any/other", { fast: ["best/any/other"], other: ["one/a/x"] }],
    ["lists one/a/x twice for any/fast", { fast: ["one/a/x", "one/a/x"] }],
    ["`fast` must have at least 1 item", { fast: [] }],
    ["`fast[0]` must be <gateway>/<vendor>/<model>", { fast: ["gpt-5"] }],
    ["has no models", {}],
  ])("is reported at start: %s", async (problem, models) => {
    expect(await problemsOf(models)).toContain(problem);
  });

  it("is a rule, a fallback, a budget or limits on its name, which would do nothing", async () => {
    const models = { fast: all };
    const instead = "names a virtual gateway, best: name the gateways of its targets instead";
    const rules = [forbid("best", { gateway: "best" })];
    expect(await problemsOf(models, { policy: definePolicy({ rules }) })).toContain(instead);
    for (const model of ["best/any/fast", "best/any/*", "Best/*/*"]) {
      const selecting = `selects ${model}, which is virtual: select its targets instead`;
      const forbidding = definePolicy({ rules: [permit("all"), forbid("best", { model })] });
      expect(await problemsOf(models, { policy: forbidding })).toContain(selecting);
      const combined = combine(forbidding, definePolicy({ rules: [permit("all")] }));
      expect(await problemsOf(models, { policy: combined })).toContain(selecting);
      const limited = { id: "b", scope: { model }, limit: { usd: 1 }, period: "day" } as const;
      expect(await problemsOf(models, { budgets: [limited] })).toContain(selecting);
      const paced = { id: "r", scope: { model }, limit: { requests: 1 }, per: "minute" } as const;
      expect(await problemsOf(models, { rateLimits: [paced] })).toContain(selecting);
    }
    const targets = definePolicy({ rules: [permit("all", { model: ["one/*/*", "*/*/*"] })] });
    expect(await problemsOf(models, { policy: targets })).toBe("");
    const fallbacks = ["best/any/fast"] as const;
    const falling = definePolicy({ rules: [permit("all", {}, { fallbacks })] });
    expect(await problemsOf(models, { policy: falling })).toContain("which is virtual");
    const budget = {
      id: "b",
      scope: { gateway: "best" },
      limit: { usd: 1 },
      period: "day",
    } as const;
    expect(await problemsOf(models, { budgets: [budget] })).toContain(instead);
    expect(await problemsOf(models, { upstreams: { best: { concurrency: 1 } } })).toContain(
      instead,
    );
  });
});
