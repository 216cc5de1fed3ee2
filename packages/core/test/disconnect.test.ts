import { ProviderError } from "@tollgate/core/provider";
import { memoryStore } from "@tollgate/store-memory";
import { createTestGateway, type ScriptedAnswer, type TestGatewayOptions } from "@tollgate/testing";
import { describe, expect, it } from "vitest";
import { conversations, type Endpoint, endpoints, isConversation } from "./endpoints.ts";
import { eventLog } from "./event-log.ts";
import { written } from "./written.ts";

const reasoner = { "tollgate/scripted": { input: "1", output: "2", reasons: true } };
const answer = { text: ["123456", "789"] };

type HeldOptions = TestGatewayOptions & { readonly reply?: ScriptedAnswer };

/** Starts gateways whose provider waits after a first piece of text, or before anything. */
const holding =
  ({ request, streamed }: Endpoint) =>
  async (afterEvents: number, { reply = answer, ...options }: HeldOptions = {}) => {
    const log = eventLog();
    const test = await createTestGateway({ observers: log.observers, ...options });
    test.provider.reply(reply, { times: Number.POSITIVE_INFINITY });
    const hold = test.provider.hold({ afterEvents });
    const client = new AbortController();
    const chat = (fields: object = {}) => request(test.key.secret, fields);
    const ask = (stream: boolean) =>
      test.gateway.fetch(new Request(chat(stream ? streamed : {}), { signal: client.signal }));
    const steps = async () =>
      (await test.gateway.steps.list({ organizationId: test.key.organizationId })).data;
    return { ...test, chat, log, hold, client, ask, steps };
  };

describe.each(conversations)("$name:", (endpoint) => {
  const { request } = endpoint;
  const held = holding(endpoint);

  describe("a client that leaves", () => {
    it.each([
      ["cancels the body", true],
      ["aborts its request", false],
    ])(
      "ends the provider's call if it %s in mid-stream, and its usage is estimated (S18)",
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

    it("before the first byte of a stream ends the provider's call and pays its hold", async () => {
      const { provider, hold, log, client, ask, steps } = await held(0);
      const asked = ask(true);
      await hold.reached();
      client.abort(new Error("gone"));
      await expect(asked).rejects.toThrow("gone");
      await log.seeing("step.settled");
      expect(provider.calls[0]?.signal.aborted).toBe(true);
      expect(await steps()).toMatchObject([
        {
          outcome: "cancelled",
          usageBasis: "estimated",
          promptTokens: 10,
          completionTokens: 4_096,
          costNanoUsd: 8_202_000,
        },
      ]);
    });

    it("gets a rejection at once, while its stream is still read", async () => {
      const { provider, hold, log, client, ask } = await held(1, { onDisconnect: "drain" });
      const asked = ask(true);
      await hold.reached();
      client.abort(new Error("gone"));
      await expect(asked).rejects.toThrow("gone");
      expect(provider.calls[0]?.signal.aborted).toBe(false);
      hold.release();
      await log.seeing("step.settled");
    });

    it.each(["abort", "drain"] as const)(
      "gets its own reason from the body that it aborts, and no failure is reported (%s)",
      async (onDisconnect) => {
        const { hold, log, client, ask } = await held(2, { onDisconnect });
        const reader = (await ask(true)).body?.getReader();
        await reader?.read();
        client.abort(new Error("gone"));
        hold.release();
        await log.seeing("step.settled");
        await expect(reader?.read()).rejects.toThrow("gone");
        expect(log.seen.filter(({ type }) => type.endsWith(".failed"))).toEqual([]);
      },
    );

    it("gets nothing, not even a ping, from a stream that starts later", async () => {
      const { gateway, chat, clock, hold, log } = await held(2);
      const { body } = await gateway.answer(chat({ stream: true }));
      if (typeof body === "string") throw new Error("not a stream");
      const texts: string[] = [];
      body.leave();
      const write = (text: string): null => {
        texts.push(text);
        return null;
      };
      body.start({ write, end: () => {}, fail: () => {} });
      await log.seeing("step.settled");
      for (let beat = 0; beat < 3; beat++) clock.advance(15_000);
      hold.release();
      expect(texts).toEqual([]);
    });

    it("never adds its partial text to the Session, and a retry continues it", async () => {
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

  const seen = { text: ["123456", "789"] };
  const shownReasoning = { reasoning: "hmm", text: ["123456", "789"] };

  describe("a stream of a reasoning model", () => {
    it.each([
      ["known from its configuration", { models: reasoner }, seen],
      ["known from the stream so far", {}, shownReasoning],
    ] as const)(
      "%s is read to its end, and its usage comes from the provider (H3)",
      async (_, options, reply) => {
        const { provider, hold, log, key, gateway, store, ask, steps } = await held(3, {
          ...options,
          reply,
        });
        await (await ask(true)).body?.cancel();
        await hold.reached();
        expect(provider.calls[0]?.signal.aborted).toBe(false);
        hold.release();
        await log.seeing("step.settled");
        const [step] = await steps();
        expect(step).toMatchObject({
          outcome: "cancelled",
          reason: "client_closed",
          usageBasis: "reported",
          totalTokens: 15,
        });
        const place = { organizationId: key.organizationId, id: step?.sessionId ?? "" };
        expect(await gateway.sessions.get(place)).toMatchObject({ length: 1 });
        const contents = await store.steps.contents(null, step?.id ?? "");
        expect(Buffer.from(contents?.reply ?? []).toString()).toContain("123456789");
      },
    );

    it("is read for 30 more seconds, then pays its hold", async () => {
      const { provider, clock, log, ask, steps } = await held(3, { models: reasoner });
      await (await ask(true)).body?.cancel();
      await clock.advance("29s");
      expect(provider.calls[0]?.signal.aborted).toBe(false);
      await clock.advance("1s");
      await log.seeing("step.settled");
      expect(await steps()).toMatchObject([
        { outcome: "cancelled", usageBasis: "estimated", completionTokens: 4_096 },
      ]);
    });

    it("pays its hold if it is cut, fails, or ends without usage", async () => {
      const down = new ProviderError("Gone.", { reason: "reset", delivery: "unknown" });
      for (const reply of [
        { ...seen, finishReason: null },
        { ...seen, failure: { error: down, afterEvents: 2 } },
        { ...seen, usage: null },
      ]) {
        const { hold, ask, steps } = await held(0, { models: reasoner, reply });
        hold.release();
        await (await ask(true)).text();
        expect(await steps()).toMatchObject([
          { usageBasis: "estimated", promptTokens: 10, completionTokens: 4_096 },
        ]);
      }
    });
  });

  describe("an answer without final usage", () => {
    const early = { finishReason: null, usage: null } as const;

    it("is charged the larger of its estimate and the usage before its last text", async () => {
      for (const [reported, completionTokens] of [
        [1, 2],
        [9, 9],
      ] as const) {
        const { provider } = await createTestGateway();
        const early = {
          ...provider.at("early"),
          async *complete() {
            yield [{ type: "request-sent" as const, host: "early.test", bodySha256: "00" }];
            const usage = { promptTokens: 4, completionTokens: reported };
            yield [{ type: "usage" as const, usage }];
            yield [{ type: "text-delta" as const, text: "123456" }];
            yield [{ type: "finish" as const, reason: "stop" as const }];
          },
        };
        const test = await createTestGateway({ providers: { early } });
        const asked = request(test.key.secret, { model: "early/a/b", stream: true });
        await (await test.gateway.fetch(asked)).text();
        const { organizationId } = test.key;
        const { data } = await test.gateway.steps.list({ organizationId });
        expect(data).toMatchObject([
          { outcome: "completed", usageBasis: "estimated", promptTokens: 4, completionTokens },
        ]);
      }
    });

    it.each([
      ["text", { ...early, text: "123456" }, 2],
      ["a refusal", { ...early, refusal: "123456" }, 2],
      ["a tool call", { ...early, toolCalls: [{ name: "abc", arguments: "{}" }] }, 2],
      ["nothing", early, 4_096],
      ["reasoning alone", { ...early, reasoning: "123456" }, 4_096],
      ["more than its hold", { ...early, reasoning: "x".repeat(30_000) }, 10_000],
      ["text and a finish reason", { text: "123456", usage: null }, 2],
      ["only a finish reason", { usage: null }, 4_096],
      [
        "text and reasoning tokens",
        { text: "123456", usage: { reasoningTokens: 3, completionTokens: 9 }, finishReason: null },
        4_096,
      ],
      [
        "text and partial usage",
        { text: "123456", usage: { promptTokens: 4, completionTokens: 1 }, finishReason: null },
        2,
      ],
    ] as const)("with %s seen is charged for that", async (_, reply, completionTokens) => {
      const { hold, ask, steps } = await held(0, { reply });
      hold.release();
      await (await ask(true)).text();
      expect(await steps()).toMatchObject([{ usageBasis: "estimated", completionTokens }]);
    });
  });

  describe("onDisconnect: drain", () => {
    const drain = { onDisconnect: "drain" } as const;

    it("reads every stream to its end, and a retry continues its Session in the same Turn", async () => {
      const { gateway, hold, log, chat, ask, steps } = await held(2, drain);
      await (await ask(true)).body?.cancel();
      hold.release();
      await log.seeing("step.settled");
      expect(await steps()).toMatchObject([
        { outcome: "cancelled", usageBasis: "reported", totalTokens: 15 },
      ]);
      await gateway.fetch(chat());
      const [second, first] = await steps();
      expect([second?.sessionId, second?.turnId]).toEqual([first?.sessionId, first?.turnId]);
    });

    it("is limited in time", async () => {
      const { provider, clock, log, ask, steps } = await held(2, drain);
      await (await ask(true)).body?.cancel();
      await clock.advance("29s");
      expect(provider.calls[0]?.signal.aborted).toBe(false);
      await clock.advance("1s");
      await log.seeing("step.settled");
      expect(await steps()).toMatchObject([{ outcome: "cancelled", reason: "client_closed" }]);
    });

    it("is limited to 8 answers per key, and 64 in total", async () => {
      const { gateway, provider, hold, log, createKey, ask, chat } = await held(2, drain);
      const leave = async (request: Request) => (await gateway.fetch(request)).body?.cancel();
      const aborted = () => provider.calls.filter(({ signal }) => signal.aborted).length;
      for (let count = 0; count < 9; count++) await leave(chat({ stream: true }));
      expect(aborted()).toBe(1);
      for (let user = 2; user <= 8; user++) {
        const other = await createKey({ userId: `user-${user}` });
        for (let count = 0; count < 8; count++) await leave(other.chat({ stream: true }));
      }
      expect(aborted()).toBe(1);
      const late = await createKey({ userId: "user-9" });
      await leave(request(late.key.secret, { stream: true }));
      expect(aborted()).toBe(2);
      hold.release();
      await log.seeing("step.settled", 66);
      await (await ask(true)).text();
      await log.seeing("step.settled", 67);
      await leave(chat({ stream: true }));
      expect(aborted()).toBe(2);
    });
  });
});

describe.each(endpoints)("$name:", (endpoint) => {
  const { request, output } = endpoint;
  const held = holding(endpoint);

  describe("a client that leaves", () => {
    it("gets a rejection at once, while its plain answer is still read", async () => {
      const { provider, hold, log, client, clock, ask, steps } = await held(0);
      const asked = ask(false);
      await hold.reached();
      client.abort(new Error("gone"));
      await expect(asked).rejects.toThrow("gone");
      await clock.advance("9m");
      expect(provider.calls[0]?.signal.aborted).toBe(false);
      hold.release();
      await log.seeing("step.settled");
      expect(await steps()).toMatchObject([
        {
          outcome: "cancelled",
          reason: "client_closed",
          finishReason: "stop",
          usageBasis: "reported",
          totalTokens: 10 + output.reported,
        },
      ]);
    });

    it("has its plain answer read until the deadline, then pays its hold", async () => {
      const { hold, log, client, clock, ask, steps } = await held(0);
      const asked = ask(false);
      await hold.reached();
      client.abort(new Error("gone"));
      await expect(asked).rejects.toThrow("gone");
      await clock.advance("10m");
      await log.seeing("step.settled");
      expect(await steps()).toMatchObject([
        { outcome: "cancelled", usageBasis: "estimated", completionTokens: output.held },
      ]);
    });

    it("causes no retry", async () => {
      const { provider, hold, log, client, ask, steps } = await held(0);
      const asked = ask(false);
      await hold.reached();
      provider.fail(
        new ProviderError("Busy.", { reason: "busy", delivery: "answered", status: 503 }),
      );
      client.abort(new Error("gone"));
      await expect(asked).rejects.toThrow("gone");
      hold.release();
      await log.seeing("step.settled");
      expect(provider.calls).toHaveLength(1);
      expect(await steps()).toMatchObject([{ outcome: "cancelled", attempts: [{}] }]);
    });

    it("before its request was read leaves nothing", async () => {
      const { gateway, provider, client, ask } = await held(0);
      client.abort(new Error("gone"));
      await expect(ask(true)).rejects.toThrow();
      expect(provider.calls).toEqual([]);
      expect(await written(gateway)).toMatchObject({ steps: 0, sessions: 0 });
    });

    it("while its Step opens leaves a cancelled Step, and no provider is called", async () => {
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
      expect(await written(gateway)).toMatchObject({
        steps: 1,
        sessions: isConversation(endpoint) ? 1 : 0,
      });
    });

    it("during the wait before a retry ends the wait", async () => {
      const log = eventLog();
      const { gateway, provider, key } = await createTestGateway({ observers: log.observers });
      provider.fail(new ProviderError("Busy.", { reason: "busy", delivery: "not-sent" }));
      const client = new AbortController();
      const asked = gateway.fetch(new Request(request(key.secret), { signal: client.signal }));
      await log.seeing("attempt.ended");
      client.abort(new Error("gone"));
      await expect(asked).rejects.toThrow("gone");
      await log.seeing("step.settled");
      expect(provider.calls).toHaveLength(1);
      const { data } = await gateway.steps.list({ organizationId: key.organizationId });
      expect(data).toMatchObject([{ outcome: "cancelled", reason: "client_closed" }]);
    });
  });

  describe("onDisconnect: abort", () => {
    it("stops reading at once, and charges the hold", async () => {
      const options = { onDisconnect: "abort", models: reasoner } as const;
      for (const stream of [true, false]) {
        const { provider, hold, log, client, ask, steps } = await held(0, options);
        const asked = ask(stream);
        await hold.reached();
        client.abort(new Error("gone"));
        await expect(asked).rejects.toThrow("gone");
        await log.seeing("step.settled");
        expect(provider.calls[0]?.signal.aborted).toBe(true);
        expect(await steps()).toMatchObject([
          { outcome: "cancelled", completionTokens: output.held },
        ]);
      }
    });
  });
});
