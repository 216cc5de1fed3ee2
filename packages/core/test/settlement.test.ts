import { ProviderError } from "@tollgate/core/provider";
import type { Store } from "@tollgate/core/store";
import { memoryStore } from "@tollgate/store-memory";
import { createTestGateway, type TestGatewayOptions } from "@tollgate/testing";
import { describe, expect, it } from "vitest";
import { conversations, type Endpoint, endpoints, isConversation } from "./endpoints.ts";
import { eventLog } from "./event-log.ts";
import { failureOf } from "./wire.ts";
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

const unrecorded = {
  code: "evidence_unavailable",
  messagesType: "api_error",
  message: /could not be recorded/,
};

/** Starts a gateway whose `chat` asks this endpoint. */
const starting =
  ({ request }: Endpoint) =>
  async (options: TestGatewayOptions = {}) => {
    const test = await createTestGateway(options);
    const chat = (fields: object = {}) => request(test.key.secret, fields);
    return { ...test, chat };
  };

describe.each(endpoints)(
  "$name: every answer that a client received complete is in the ledger",
  (endpoint) => {
    const { expectFailure, streamed } = endpoint;
    const started = starting(endpoint);

    it("sends nothing before the Step is durable (U2)", async () => {
      const { gateway, provider, key, chat } = await started();
      provider.reply(async () => {
        const { data } = await gateway.steps.list({ organizationId: key.organizationId });
        expect(data).toMatchObject([{ outcome: "open", attempts: [{ outcome: "open" }] }]);
        return { text: "4711", embeddings: [[4711]] };
      });
      expect(await (await gateway.fetch(chat())).text()).toContain("4711");
    });

    it("holds a plain body back until the settlement", async () => {
      const { store, asked, release } = slowToSettle();
      const { gateway, chat } = await started({ store });
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

    it.each([1, 4])("retries when the outcome of settling is unknown, %s times", async (times) => {
      for (const after of [false, true]) {
        const test = await started({
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

    it("gives an error, never a complete answer, when settling fails permanently; recovery settles later (F22)", async () => {
      const { store, heal } = failing("settleStep");
      const { gateway, clock, key, chat } = await started({
        store,
        budgets: [{ id: "day", limit: { tokens: 1_000_000 }, period: "day" }],
      });
      const plain = await clock.until(gateway.fetch(chat()), "10s");
      expect(plain.status).toBe(503);
      // The provider has answered: an SDK's retry would be paid for as well.
      expect(plain.headers.get("x-should-retry")).toBe("false");
      await expectFailure(plain, unrecorded);
      const streaming = gateway.fetch(chat(streamed)).then((answer) => answer.text());
      const sent = await clock.until(streaming, "10s");
      expect(sent).toMatch(unrecorded.message);
      expect(sent).not.toContain("secret");
      if (isConversation(endpoint)) {
        expect(sent).toContain('"OK"');
        expect(sent).not.toMatch(endpoint.completes);
      }
      heal();
      await clock.advance("30s");
      const { organizationId } = key;
      const { data } = await gateway.steps.list({ organizationId });
      expect(data.map(({ outcome }) => outcome)).toEqual(["interrupted", "interrupted"]);
      expect((await gateway.budgets.status({ id: "day" })).data).toMatchObject([{ held: 0 }]);
    });

    it.each([{}, streamed])("notifies observers once (%o) (H9)", async (fields) => {
      const log = eventLog();
      const { store } = failing("settleStep");
      const { chat, clock, gateway } = await started({ store, observers: log.observers });
      await clock.until(gateway.fetch(chat(fields)).then((answer) => answer.text()));
      const degraded = log.seen.filter(({ type }) => type === "gateway.degraded");
      expect(degraded).toMatchObject([{ what: "settlement" }]);
      expect(log.seen.map(({ type }) => type)).not.toContain("step.settled");
    });

    it("gives 503 and calls no provider if the Step can't open", async () => {
      for (const fields of [{}, streamed]) {
        const { gateway, provider, chat } = await started({
          store: failing("openStep").store,
        });
        const answer = await gateway.fetch(chat(fields));
        expect(answer.status).toBe(503);
        expect(answer.headers.get("x-service-policy-decision-id")).not.toBeNull();
        await expectFailure(answer, unrecorded);
        expect(provider.calls).toEqual([]);
      }
    });

    it("gives an error even for a denial that can't be recorded", async () => {
      const { gateway, chat } = await started({
        store: failing("recordRefusal").store,
        key: { models: ["test/other/*"] },
      });
      await expectFailure(gateway.fetch(chat()), unrecorded);
    });
  },
);

describe.each(conversations)("$name: a stream", (endpoint) => {
  const { completes } = endpoint;
  const started = starting(endpoint);

  it("holds the end of a stream back until the settlement, but not the text before them (U3)", async () => {
    const { store, asked, release } = slowToSettle();
    const { gateway, key, chat } = await started({ store });
    const answer = await gateway.fetch(chat({ stream: true }));
    let text = "";
    const reading = (async () => {
      for await (const bytes of answer.body ?? []) {
        text += Buffer.from(bytes).toString();
        if (!completes.test(text)) continue;
        const { data } = await gateway.activity.list({ organizationId: key.organizationId });
        expect(data).toMatchObject([{ totalTokens: 15 }]);
      }
    })();
    await asked;
    await new Promise((resolve) => setImmediate(resolve));
    expect(text).toContain('"OK"');
    expect(text).not.toMatch(completes);
    release();
    await reading;
    expect(text).toMatch(completes);
  });

  it("completes even if the client leaves after the last event, while it settles (F22)", async () => {
    const { store, asked, release } = slowToSettle();
    const { gateway, key, chat } = await started({ store });
    const client = new AbortController();
    const request = new Request(chat({ stream: true }), { signal: client.signal });
    const reading = (await gateway.fetch(request)).text();
    await asked;
    client.abort();
    release();
    expect(await reading).toMatch(completes);
    const { data } = await gateway.activity.list({ organizationId: key.organizationId });
    expect(data).toMatchObject([{ finishReason: "stop", totalTokens: 15 }]);
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
