import { ProviderError } from "@tollgate/core/provider";
import type { Store } from "@tollgate/core/store";
import { memoryStore } from "@tollgate/store-memory";
import { createTestGateway } from "@tollgate/testing";
import { describe, expect, it } from "vitest";
import { eventLog } from "./event-log.ts";
import { completionOf, failureOf, sentIn, streamed } from "./wire.ts";
import { written } from "./written.ts";

/** A store whose settlements wait for the test. */
function slowToSettle() {
  const store = memoryStore();
  const asked = Promise.withResolvers<void>();
  const released = Promise.withResolvers<void>();
  const slow: Store = {
    ...store,
    async settleStep(settlement) {
      asked.resolve();
      await released.promise;
      return store.settleStep(settlement);
    },
  };
  return { store: slow, asked: asked.promise, release: () => released.resolve() };
}

function responseRequest(secret: string, stream: boolean): Request {
  return new Request("http://gateway.test/v1/responses", {
    method: "POST",
    headers: { authorization: `Bearer ${secret}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "test/tollgate/scripted", input: "Hello", stream }),
  });
}

/** A store with one verb that fails this many times, before or after it does its work. */
function failing(
  verb: "openStep" | "openAttempt" | "settleStep" | "recordRefusal",
  { times = Number.POSITIVE_INFINITY, after = false } = {},
): { readonly store: Store; readonly heal: () => void } {
  const store = memoryStore();
  let left = times;
  const failed = async (work: () => Promise<unknown>): Promise<void> => {
    if (left-- <= 0) return;
    if (after) await work();
    throw new Error("the disk is full of secrets");
  };
  const broken: Store = {
    ...store,
    async openStep(intent) {
      if (verb === "openStep") await failed(() => store.openStep(intent));
      return store.openStep(intent);
    },
    async openAttempt(intent) {
      if (verb === "openAttempt") await failed(() => store.openAttempt(intent));
      return store.openAttempt(intent);
    },
    async settleStep(settlement) {
      if (verb === "settleStep") await failed(() => store.settleStep(settlement));
      return store.settleStep(settlement);
    },
    async recordRefusal(refusal) {
      if (verb === "recordRefusal") await failed(() => store.recordRefusal(refusal));
      return store.recordRefusal(refusal);
    },
  };
  const heal = (): void => {
    left = 0;
  };
  return { store: broken, heal };
}

describe("every answer that a client received complete is in the ledger", () => {
  it("sends nothing before the Step is durable (U2)", async () => {
    const { gateway, provider, key, chat } = await createTestGateway();
    provider.reply(async () => {
      const { data } = await gateway.steps.list({ organizationId: key.organizationId });
      expect(data).toMatchObject([{ outcome: "open", attempts: [{ outcome: "open" }] }]);
      return "seen";
    });
    expect((await completionOf(gateway.fetch(chat()))).choices[0].message.content).toBe("seen");
  });

  it("holds a plain body back until the settlement", async () => {
    const { store, asked, release } = slowToSettle();
    const { gateway, chat } = await createTestGateway({ store });
    let isAnswered = false;
    const answering = gateway.fetch(chat()).then((answer) => {
      isAnswered = true;
      return answer;
    });
    await asked;
    await new Promise((resolve) => setImmediate(resolve));
    expect(isAnswered).toBe(false);
    release();
    expect((await answering).status).toBe(200);
  });

  it("holds the finish chunk and [DONE] back until the settlement, but not the text before them (U3)", async () => {
    const { store, asked, release } = slowToSettle();
    const { gateway, key, chat } = await createTestGateway({ store });
    const answer = await gateway.fetch(chat({ stream: true }));
    let text = "";
    const reading = (async () => {
      for await (const bytes of answer.body ?? []) {
        text += Buffer.from(bytes).toString();
        if (!text.includes("[DONE]")) continue;
        const { data } = await gateway.activity.list({ organizationId: key.organizationId });
        expect(data).toMatchObject([{ totalTokens: 15 }]);
      }
    })();
    await asked;
    await new Promise((resolve) => setImmediate(resolve));
    expect(text).toContain('"content":"OK"');
    expect(text).not.toContain('"finish_reason":"stop"');
    release();
    await reading;
    expect(sentIn(text).at(-1)).toEqual({ type: "done" });
  });

  it("completes even if the client leaves after the last event, while it settles (F22)", async () => {
    const { store, asked, release } = slowToSettle();
    const { gateway, key, chat } = await createTestGateway({ store });
    const client = new AbortController();
    const request = new Request(chat({ stream: true }), { signal: client.signal });
    const reading = (await gateway.fetch(request)).text();
    await asked;
    client.abort();
    release();
    expect(await reading).toContain("[DONE]");
    const { data } = await gateway.activity.list({ organizationId: key.organizationId });
    expect(data).toMatchObject([{ finishReason: "stop", totalTokens: 15 }]);
  });

  it.each([1, 4])("retries when the outcome of settling is unknown, %s times", async (times) => {
    for (const after of [false, true]) {
      const test = await createTestGateway({
        store: failing("settleStep", { times, after }).store,
      });
      const answer = await test.clock.until(test.gateway.fetch(test.chat()), "5s");
      expect(answer.status).toBe(200);
      expect(await written(test.gateway)).toMatchObject({ steps: 1 });
      const { data } = await test.gateway.activity.list({
        organizationId: test.key.organizationId,
      });
      expect(data).toHaveLength(1);
    }
  });

  it("gives an error, never a complete answer, when settling fails permanently; recovery settles later", async () => {
    const { store, heal } = failing("settleStep");
    const { gateway, clock, key, chat } = await createTestGateway({
      store,
      budgets: [{ id: "day", limit: { tokens: 1_000_000 }, period: "day" }],
    });
    const plain = await clock.until(gateway.fetch(chat()), "10s");
    expect(plain.status).toBe(503);
    // The provider has answered: an SDK's retry would be paid for as well.
    expect(plain.headers.get("x-should-retry")).toBe("false");
    expect(await failureOf(plain)).toMatchObject({
      type: "server_error",
      code: "evidence_unavailable",
    });
    const sent = await clock.until(streamed(gateway.fetch(chat({ stream: true }))), "10s");
    expect(sent.map(({ type }) => type)).toEqual(["chunk", "chunk", "error", "done"]);
    expect(JSON.stringify(sent)).not.toContain("secret");
    expect(JSON.stringify(sent)).not.toContain('"finish_reason":"stop"');
    heal();
    await clock.advance("30s");
    const { organizationId } = key;
    const { data } = await gateway.steps.list({ organizationId });
    expect(data.map(({ outcome }) => outcome)).toEqual(["interrupted", "interrupted"]);
    expect((await gateway.budgets.status({ id: "day" })).data).toMatchObject([{ held: 0 }]);
  });

  it.each([
    ["chat", false],
    ["chat", true],
    ["responses", false],
    ["responses", true],
  ] as const)("notifies observers once (%s, stream: %s) (H9)", async (family, stream) => {
    const log = eventLog();
    const { store } = failing("settleStep");
    const test = await createTestGateway({ store, observers: log.observers });
    const { chat, clock, gateway } = test;
    const request = family === "chat" ? chat({ stream }) : responseRequest(test.key.secret, stream);
    await clock.until(gateway.fetch(request).then((answer) => answer.text()));
    const degraded = log.seen.filter(({ type }) => type === "gateway.degraded");
    expect(degraded).toMatchObject([{ what: "settlement" }]);
    expect(log.seen.map(({ type }) => type)).not.toContain("step.settled");
  });

  it("gives 503 and calls no provider if the Step can't open", async () => {
    for (const stream of [false, true]) {
      const { gateway, provider, chat } = await createTestGateway({
        store: failing("openStep").store,
      });
      const answer = await gateway.fetch(chat({ stream }));
      expect(answer.status).toBe(503);
      expect(answer.headers.get("x-service-policy-decision-id")).not.toBeNull();
      expect(await failureOf(answer)).toMatchObject({
        code: "evidence_unavailable",
        message: expect.not.stringContaining("secret"),
      });
      expect(provider.calls).toEqual([]);
    }
  });

  it("gives an error even for a denial that can't be recorded", async () => {
    const { gateway, chat } = await createTestGateway({
      store: failing("recordRefusal").store,
      key: { models: ["test/other/*"] },
    });
    expect(await failureOf(gateway.fetch(chat()))).toMatchObject({ code: "evidence_unavailable" });
  });
});

describe("a further attempt whose opening has an unknown outcome", () => {
  it.each([false, true])("is opened again, and runs once (after the commit: %s)", async (after) => {
    const test = await createTestGateway({
      store: failing("openAttempt", { times: 1, after }).store,
    });
    const { gateway, provider, key, chat, clock } = test;
    provider.fail(
      new ProviderError("Down.", { reason: "down", delivery: "answered", status: 500 }),
    );
    expect((await clock.until(gateway.fetch(chat()))).status).toBe(200);
    const { data } = await gateway.steps.list({ organizationId: key.organizationId });
    expect(data.map(({ attempts }) => attempts.map(({ outcome }) => outcome))).toEqual([
      ["failed", "completed"],
    ]);
    expect(provider.calls).toHaveLength(2);
  });
});

describe("a closing gateway", () => {
  it("admits nothing more, and lets running Steps settle", async () => {
    const { gateway, provider, chat } = await createTestGateway();
    const hold = provider.hold();
    const running = gateway.fetch(chat());
    await hold.reached();
    const closing = gateway.close();
    const late = await gateway.fetch(chat({ stream: true }));
    expect([late.status, late.headers.get("retry-after")]).toEqual([503, "1"]);
    expect(await failureOf(late)).toMatchObject({ type: "server_error", code: "overloaded" });
    hold.release();
    expect((await running).status).toBe(200);
    await closing;
    await gateway.close();
  });
});
