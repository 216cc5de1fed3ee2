import { ProviderError } from "@tollgate/core/provider";
import { memoryStore } from "@tollgate/store-memory";
import { createTestGateway, type TestGatewayOptions } from "@tollgate/testing";
import { describe, expect, it } from "vitest";
import { eventLog } from "./event-log.ts";
import { written } from "./written.ts";

const answer = { text: ["123456", "789"] };

/** A gateway whose provider waits after a first piece of text, or before anything. */
async function held(afterEvents: number, options: TestGatewayOptions = {}) {
  const log = eventLog();
  const test = await createTestGateway({ observers: log.observers, ...options });
  test.provider.reply(answer, { times: Number.POSITIVE_INFINITY });
  const hold = test.provider.hold({ afterEvents });
  const client = new AbortController();
  const ask = (stream: boolean) =>
    test.gateway.fetch(new Request(test.chat({ stream }), { signal: client.signal }));
  const steps = async () =>
    (await test.gateway.steps.list({ organizationId: test.key.organizationId })).data;
  return { ...test, log, hold, client, ask, steps };
}

describe("a client that leaves", () => {
  it.each([
    ["cancels the body", true],
    ["aborts its request", false],
  ])(
    "and %s in mid-stream ends the provider's call, and the usage is estimated",
    async (_, cancels) => {
      const { provider, log, client, ask, steps } = await held(2);
      const stream = await ask(true);
      const reader = stream.body?.getReader();
      await reader?.read();
      if (cancels) await reader?.cancel();
      else client.abort();
      await log.seeing("step.settled");
      expect(provider.calls[0]?.signal.aborted).toBe(true);
      expect(await steps()).toMatchObject([
        {
          outcome: "cancelled",
          reason: "client_closed",
          usageBasis: "estimated",
          promptTokens: 10,
          completionTokens: 2,
          costNanoUsd: 14_000,
          attempts: [{ outcome: "cancelled", host: "test.test" }],
        },
      ]);
    },
  );

  it("before the first byte is told nothing, and its Step is cancelled", async () => {
    for (const stream of [true, false]) {
      const { provider, hold, log, client, ask, steps } = await held(0);
      const asked = ask(stream);
      await hold.reached();
      client.abort(new Error("gone"));
      await expect(asked).rejects.toThrow("gone");
      await log.seeing("step.settled");
      expect(provider.calls[0]?.signal.aborted).toBe(true);
      expect(await steps()).toMatchObject([
        { outcome: "cancelled", promptTokens: 10, completionTokens: 0, costNanoUsd: 10_000 },
      ]);
    }
  });

  it("before its request was read leaves nothing", async () => {
    const { gateway, provider, client, ask } = await held(0);
    client.abort(new Error("gone"));
    await expect(ask(true)).rejects.toThrow();
    expect(provider.calls).toEqual([]);
    expect(await written(gateway)).toMatchObject({ steps: 0, sessions: 0 });
  });

  it("while its Step is being opened leaves a cancelled Step, and no provider is asked", async () => {
    const [opening, opened] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const store = memoryStore();
    const { gateway, provider, log, client, ask, steps } = await held(0, {
      store: {
        ...store,
        async openStep(intent) {
          opening.resolve();
          await opened.promise;
          return store.openStep(intent);
        },
      },
    });
    const asked = ask(false);
    await opening.promise;
    client.abort(new Error("gone"));
    opened.resolve();
    await expect(asked).rejects.toThrow("gone");
    await log.seeing("step.settled");
    expect(provider.calls).toEqual([]);
    expect(await steps()).toMatchObject([
      { outcome: "cancelled", totalTokens: 0, costNanoUsd: 0, attempts: [{ host: null }] },
    ]);
    expect(await written(gateway)).toMatchObject({ steps: 1, sessions: 1 });
  });

  it("while a retry waits ends the wait", async () => {
    const log = eventLog();
    const { gateway, provider, key, chat } = await createTestGateway({ observers: log.observers });
    provider.fail(new ProviderError("Busy.", { reason: "busy", delivery: "not-sent" }));
    const client = new AbortController();
    const asked = gateway.fetch(new Request(chat(), { signal: client.signal }));
    await log.seeing("attempt.failed");
    client.abort(new Error("gone"));
    await expect(asked).rejects.toThrow("gone");
    await log.seeing("step.settled");
    expect(provider.calls).toHaveLength(1);
    const { data } = await gateway.steps.list({ organizationId: key.organizationId });
    expect(data).toMatchObject([{ outcome: "cancelled", reason: "client_closed" }]);
  });

  it("never makes its partial text a part of the Session, and a retry continues it", async () => {
    const { gateway, hold, log, key, chat, ask, steps } = await held(2);
    const stream = await ask(true);
    await stream.body?.cancel();
    await log.seeing("step.settled");
    hold.release();
    await gateway.fetch(chat());
    const [second, first] = await steps();
    const transcript = await gateway.sessions.transcript({
      organizationId: key.organizationId,
      id: first?.sessionId ?? "",
    });
    expect(transcript).toMatchObject([
      { messages: [{ role: "user", content: "Hello" }] },
      { messages: [{ role: "assistant", content: "123456789" }] },
    ]);
    expect([second?.sessionId, second?.turnId]).toEqual([first?.sessionId, first?.turnId]);
  });
});

describe("onDisconnect: drain", () => {
  const drain = { onDisconnect: "drain" } as const;

  it("reads the answer to its end, and records it whole", async () => {
    const { gateway, hold, log, key, ask, steps } = await held(2, drain);
    const stream = await ask(true);
    await stream.body?.cancel();
    hold.release();
    await log.seeing("step.settled");
    const [step] = await steps();
    expect(step).toMatchObject({
      outcome: "completed",
      reason: "client_closed",
      usageBasis: "reported",
      totalTokens: 15,
    });
    const { organizationId } = key;
    const id = step?.sessionId ?? "";
    expect(await gateway.sessions.get({ organizationId, id })).toMatchObject({ length: 2 });
  });

  it("is bounded in time", async () => {
    const { provider, clock, log, ask, steps } = await held(2, drain);
    await (await ask(true)).body?.cancel();
    await clock.advance("29s");
    expect(provider.calls[0]?.signal.aborted).toBe(false);
    await clock.advance("1s");
    await log.seeing("step.settled");
    expect(await steps()).toMatchObject([{ outcome: "cancelled", reason: "client_closed" }]);
  });

  it("is bounded in number: 32 at once", async () => {
    const { provider, hold, log, ask, steps } = await held(2, drain);
    for (let count = 0; count < 33; count++) await (await ask(true)).body?.cancel();
    await log.seeing("step.settled");
    expect(provider.calls.filter(({ signal }) => signal.aborted)).toHaveLength(1);
    hold.release();
    await log.seeing("step.settled", 33);
    const outcomes = (await steps()).map(({ outcome }) => outcome);
    expect(outcomes.filter((outcome) => outcome === "completed")).toHaveLength(32);
    await (await ask(true)).text();
    await log.seeing("step.settled", 34);
  });
});
