import { createHash } from "node:crypto";
import { everyOrganization, virtual } from "@tollgate/core";
import { definePolicy, forbid, permit } from "@tollgate/core/policy";
import { ProviderError } from "@tollgate/core/provider";
import {
  countingIds,
  createTestGateway,
  manualClock,
  type TestGateway,
  type TestGatewayOptions,
} from "@tollgate/testing";
import { describe, expect, it } from "vitest";
import { endpoints, isConversation } from "./endpoints.ts";
import { eventLog } from "./event-log.ts";
import { responsesOf } from "./responses-calls.ts";
import { stores } from "./stores.ts";
import { failureOf } from "./wire.ts";

type Fields = Readonly<Record<string, unknown>>;
type Headers = Readonly<Record<string, string>>;

const key = { "idempotency-key": "order-17" };
const broken = new ProviderError("The connection broke.", {
  reason: "network",
  delivery: "unknown",
});
const refused = new ProviderError("Busy.", { reason: "status", delivery: "answered", status: 503 });
const day = 86_400_000;
const noRetries = { retries: { max: 0 } };

/** A gateway with an event log, and its Steps. */
async function started(open: (typeof stores)[number][1], options: TestGatewayOptions = {}) {
  const log = eventLog();
  const test = await createTestGateway({ store: open(), observers: log.observers, ...options });
  const steps = async () =>
    (await test.gateway.steps.list({ organizationId: everyOrganization })).data;
  return { ...test, log, steps };
}

/** Every endpoint, asked in the same way. */
const asked = endpoints.map(
  (endpoint) =>
    [
      endpoint.name,
      (test: TestGateway, fields: object = {}, headers: Headers = key) =>
        test.gateway.fetch(endpoint.request(test.key.secret, fields, headers)),
      endpoint,
    ] as const,
);

type Ask = (typeof asked)[number][1];
const messagesType = "invalid_request_error";
const notKept = { code: "idempotency_not_kept", messagesType, message: /was not kept/ };

/** The parts of an answer that a client sees, except the id of its request. */
async function seen(answer: Response) {
  const {
    "x-request-id": _,
    "request-id": _same,
    "idempotency-replayed": replayed,
    ...headers
  } = headersOf(answer);
  return { status: answer.status, headers, text: await answer.text(), replayed: replayed ?? null };
}

function headersOf(answer: Response): Headers {
  return Object.fromEntries(answer.headers);
}

describe.each(stores)("an Idempotency-Key on %s", (_, open) => {
  describe.each(asked)("with %s", (_endpoint, ask, { streamed, says, expectFailure }) => {
    const forms: readonly (readonly [string, Fields])[] = [
      ["plain", {}],
      ...(streamed.stream ? [["streamed", streamed] as const] : []),
    ];

    it.each(forms)("gets a %s answer again, byte for byte, without another call", async (...of) => {
      const [, form] = of;
      const test = await started(open);
      test.provider.reply({ text: ["caf\u00e9 ", '\u{1f600} "done"'] });
      const first = await seen(await ask(test, form));
      expect(first).toMatchObject({ status: 200, replayed: null });
      for (const _repeat of [1, 2])
        expect(await seen(await ask(test, form))).toEqual({ ...first, replayed: "true" });
      expect(test.provider.calls).toHaveLength(1);
      expect(await test.steps()).toHaveLength(1);
    });

    it.each(forms)("refuses a repeat while the first %s request runs, with 409", async (...of) => {
      const [, form] = of;
      const test = await started(open);
      const hold = test.provider.hold({ afterEvents: 2 });
      const asked = ask(test, form).then(seen);
      await hold.reached();
      await test.clock.advance(3_000);
      const repeat = await ask(test, form);
      expect(repeat.status).toBe(409);
      expect(headersOf(repeat)).toMatchObject({
        "x-should-retry": "true",
        "retry-after": "3",
        "retry-after-ms": "3000",
      });
      const [step] = await test.steps();
      expect(repeat.headers.get("x-service-policy-decision-id")).toBe(step?.decisionId);
      await expectFailure(repeat, {
        code: "idempotency_in_progress",
        messagesType,
        message: /still running/,
      });
      hold.release();
      const first = await asked;
      expect(await seen(await ask(test, form))).toMatchObject({ text: first.text });
      expect(test.provider.calls).toHaveLength(1);
    });

    it("refuses another body or another data class under the same key, with 422", async () => {
      const test = await started(open);
      await (await ask(test)).text();
      const inClass = { ...key, "x-service-data-sensitivity": "D1_INTERNAL" };
      for (const other of [ask(test, says("Goodbye")), ask(test, {}, inClass)]) {
        const answer = await other;
        expect(answer.status).toBe(422);
        expect(answer.headers.get("x-should-retry")).toBe("false");
        await expectFailure(answer, {
          code: "idempotency_mismatch",
          messagesType,
          message: /different body, data class or source/,
        });
      }
      expect(test.provider.calls).toHaveLength(1);
    });

    it("answers a repeat of a request whose answer wasn't kept with 409, and never calls twice", async () => {
      const test = await started(open, { policy: digestPolicy() });
      await (await ask(test)).text();
      const repeat = await ask(test);
      expect(repeat.status).toBe(409);
      expect(repeat.headers.get("x-should-retry")).toBe("false");
      await expectFailure(repeat, notKept);
      expect(test.provider.calls).toHaveLength(1);
    });

    it("gives the answer to a repeat if the client left before its end", async () => {
      for (const [, form] of forms) {
        const test = await started(open);
        test.provider.reply({ text: ["one ", "two ", "three"] });
        const hold = test.provider.hold({ afterEvents: 2 });
        const client = new AbortController();
        const asked = leaving(test, ask, form, client.signal);
        await hold.reached();
        client.abort(new Error("gone"));
        await expect(asked).rejects.toThrow("gone");
        expect(test.provider.calls[0]?.signal.aborted).toBe(false);
        hold.release();
        await test.log.seeing("step.settled");
        const repeat = await ask(test, form);
        expect(repeat.headers.get("idempotency-replayed")).toBe("true");
        const text = await repeat.text();
        const whole = await createTestGateway();
        whole.provider.reply({ text: ["one ", "two ", "three"] });
        expect(withoutIds(text)).toBe(withoutIds(await (await ask(whole, form)).text()));
        expect(await test.steps()).toMatchObject([{ outcome: "completed" }]);
        expect(test.provider.calls).toHaveLength(1);
      }
    });
  });

  describe.each(asked.filter(([, , endpoint]) => isConversation(endpoint)))(
    "with %s",
    (_endpoint, ask, { streamed, expectFailure }) => {
      it.each([
        ["plain", {}],
        ["streamed", streamed],
      ])("keeps %s answers of up to 1 MiB", async (_form, form) => {
        const test = await started(open);
        const piece = "x".repeat(50_000);
        const text = (pieces: number) => ({ text: Array<string>(pieces).fill(piece) });
        // A streamed response repeats its text in its last events.
        test.provider.reply(text(4));
        test.provider.reply(text(22));
        const small = await seen(await ask(test, form));
        expect(small.status).toBe(200);
        expect(await seen(await ask(test, form))).toEqual({ ...small, replayed: "true" });
        const other = { "idempotency-key": "larger" };
        const large = await seen(await ask(test, form, other));
        expect(large.text).toContain("stream" in form ? "x".repeat(1_000) : "x".repeat(1_100_000));
        await expectFailure(ask(test, form, other), notKept);
        expect(test.provider.calls).toHaveLength(2);
      });
    },
  );

  it("is free again after 24 hours", async () => {
    const test = await started(open);
    const ask = async () => seen(await test.gateway.fetch(test.chat({}, key)));
    const first = await ask();
    const settledAt = test.clock.now();
    test.clock.setWall(settledAt + day - 1);
    expect((await ask()).text).toBe(first.text);
    expect(await test.gateway.sweep()).toBe(0);
    test.clock.setWall(settledAt + day);
    const later = await ask();
    expect(later).toMatchObject({ status: 200, replayed: null });
    expect(later.text).not.toBe(first.text);
    expect(test.provider.calls).toHaveLength(2);
    test.clock.setWall(settledAt + 2 * day);
    expect(await test.gateway.sweep()).toBe(1);
  });

  it("is free again after a call that the provider refused, but not after one of unknown outcome", async () => {
    const test = await started(open, noRetries);
    const ask = () => test.gateway.fetch(test.chat({}, key));
    test.provider.fail(refused);
    expect((await ask()).status).toBe(503);
    test.provider.fail(broken);
    const unknown = await ask();
    expect([unknown.status, unknown.headers.get("x-should-retry")]).toEqual([502, "false"]);
    const repeat = await ask();
    expect([repeat.status, repeat.headers.get("x-should-retry")]).toEqual([409, "false"]);
    expect(await failureOf(repeat)).toMatchObject({ code: "idempotency_interrupted" });
    expect(test.provider.calls).toHaveLength(2);
  });

  it.each([408, 502, 504, 524])(
    "stays claimed after status %i, with which a proxy gives up on a provider",
    async (status) => {
      const test = await started(open, noRetries);
      const ask = () => test.gateway.fetch(test.chat({}, key));
      test.provider.fail(
        new ProviderError("Late.", { reason: "status", delivery: "answered", status }),
      );
      await ask();
      expect(await failureOf(await ask())).toMatchObject({ code: "idempotency_interrupted" });
      expect(test.provider.calls).toHaveLength(1);
    },
  );

  it("stays claimed if any attempt has an unknown outcome", async () => {
    const test = await started(open, { retries: { max: 1, allowDuplicates: true } });
    test.provider.fail(broken);
    test.provider.fail(refused);
    const asked = test.gateway.fetch(test.chat({}, key));
    await test.clock.advance("1m");
    expect((await asked).status).toBe(503);
    const repeat = await test.gateway.fetch(test.chat({}, key));
    expect(await failureOf(repeat)).toMatchObject({ code: "idempotency_interrupted" });
    expect(test.provider.calls).toHaveLength(2);
  });

  it("is free again if the client left before the provider was asked", async () => {
    const test = await started(open);
    const client = new AbortController();
    const request = new Request(test.chat({}, key), { signal: client.signal });
    const asked = test.gateway.fetch(request);
    await test.log.seeing("step.opened");
    client.abort(new Error("gone"));
    await asked.catch(() => null);
    const repeat = await test.gateway.fetch(test.chat({}, key));
    expect(repeat.status).toBe(200);
    expect(test.provider.calls.length).toBe(1);
  });

  it("stays claimed if onDisconnect aborts the call of a client that left", async () => {
    const test = await started(open, { onDisconnect: "abort" });
    const hold = test.provider.hold({ afterEvents: 2 });
    const client = new AbortController();
    const request = new Request(test.chat({ stream: true }, key), { signal: client.signal });
    const asked = test.gateway.fetch(request).then((answer) => answer.text());
    await hold.reached();
    client.abort(new Error("gone"));
    await asked.catch(() => null);
    await test.log.seeing("step.settled");
    const repeat = await test.gateway.fetch(test.chat({ stream: true }, key));
    expect(await failureOf(repeat)).toMatchObject({ code: "idempotency_interrupted" });
    expect(test.provider.calls[0]?.signal.aborted).toBe(true);
  });

  it("answers with 409 idempotency_interrupted once the Step of a lost process is recovered", async () => {
    const store = open();
    const gone = await createTestGateway({ store });
    const clock = manualClock();
    const peer = await createTestGateway({ store, clock, ids: countingIds(1) });
    const hold = gone.provider.hold({ afterEvents: 2 });
    await gone.gateway.fetch(gone.chat({ stream: true }, key));
    const ask = () => peer.gateway.fetch(gone.chat({ stream: true }, key));
    expect(await failureOf(await ask())).toMatchObject({ code: "idempotency_in_progress" });
    await clock.advance("20s");
    expect(await failureOf(await ask())).toMatchObject({ code: "idempotency_interrupted" });
    expect(peer.provider.calls).toHaveLength(0);
    hold.release();
  });

  it("is not claimed by a request that was refused", async () => {
    const test = await started(open, {
      policy: definePolicy({
        rules: [forbid("no-model", { model: "test/*/forbidden" }), permit("rest")],
      }),
      budgets: [{ id: "few", limit: { requests: 1 }, period: "hour" }],
    });
    const statuses: number[] = [];
    const ask = async (fields: Fields) => {
      const answer = await test.gateway.fetch(test.chat(fields, key));
      await answer.text();
      statuses.push(answer.status);
    };
    await ask({ model: "test/tollgate/forbidden" });
    await ask({ model: "nowhere/tollgate/scripted" });
    await (await test.gateway.fetch(test.chat())).text();
    await ask({});
    await test.clock.advance("1h");
    await ask({});
    expect(statuses).toEqual([403, 404, 429, 200]);
  });

  it("gets its answer although the budget is used up by then, but not if the policy forbids it", async () => {
    const store = open();
    const budgets = [{ id: "few", limit: { requests: 1 }, period: "day" }] as const;
    const { gateway, chat, clock } = await createTestGateway({ store, budgets });
    const ask = async (from = gateway) => seen(await from.fetch(chat({}, key)));
    const first = await ask();
    expect(await ask()).toEqual({ ...first, replayed: "true" });
    const policy = definePolicy({ rules: [forbid("all")] });
    const strict = await createTestGateway({ store, clock, policy, ids: countingIds(1) });
    expect((await ask(strict.gateway)).status).toBe(403);
  });

  it("gets its answer although the model has no price by then, as no other request does", async () => {
    const store = open();
    const budgets = [{ id: "usd", limit: { usd: 1 }, period: "day" }] as const;
    const { gateway, chat, clock } = await createTestGateway({ store, budgets });
    const first = await seen(await gateway.fetch(chat({}, key)));
    const options = { store, clock, budgets, models: {}, ids: countingIds(1) };
    const unpriced = (await createTestGateway(options)).gateway;
    const repeat = await seen(await unpriced.fetch(chat({}, key)));
    expect(repeat).toEqual({ ...first, replayed: "true" });
    for (const other of ["order-18", "order-19"])
      expect(await failureOf(unpriced.fetch(chat({}, { "idempotency-key": other })))).toMatchObject(
        { code: "price_unknown" },
      );
  });

  it("of the same caller from another source is refused, with 422", async () => {
    const { gateway, chat, provider } = await started(open);
    const ada = { organizationId: "organization-1", userId: "ada", label: "web" };
    await (await gateway.as({ ...ada, source: "app" }).fetch(chat({}, key))).text();
    const other = await gateway.as({ ...ada, source: "job" }).fetch(chat({}, key));
    expect(await failureOf(other)).toMatchObject({ code: "idempotency_mismatch" });
    expect(provider.calls).toHaveLength(1);
  });

  it.each([
    ["a fallback", "eu/lab/m", []],
    ["a target of a virtual gateway", "any/any/both", ["us/lab/m", "eu/lab/m"]],
  ])(
    "no longer gets an answer of %s that the API key may not use by now",
    async (_case, model, targets) => {
      const test = await started(open, {
        gateways: ["us", "eu"],
        ...noRetries,
        ...(targets.length > 0 && { providers: { any: virtual({ both: targets }) } }),
        policy: definePolicy({ rules: [permit("all", {}, { fallbacks: ["us/lab/m"] })] }),
      });
      test.provider.fail(refused, { when: ({ gateway }) => gateway === "eu" });
      const ask = () => test.gateway.fetch(test.chat({ model }, key));
      expect((await seen(await ask())).headers["x-service-model"]).toBe("us/lab/m");
      expect((await seen(await ask())).replayed).toBe("true");
      const { organizationId, id } = test.key;
      await test.gateway.keys.update({ organizationId, id, models: ["eu/*/*", "any/*/*"] });
      const repeat = await ask();
      expect(repeat.status).toBe(403);
      expect(await failureOf(repeat)).toMatchObject({ code: "policy_denied" });
      const denied = await test.gateway.decisions.get({
        organizationId,
        id: repeat.headers.get("x-service-policy-decision-id") ?? "",
      });
      expect(denied).toMatchObject({ effect: "deny", facts: { gateway: "us" } });
      const { data } = await test.gateway.decisions.list({ organizationId, effect: "deny" });
      // A target of a virtual gateway that is denied is recorded too.
      expect(data).toHaveLength(targets.length === 0 ? 1 : 2);
      expect(await test.steps()).toHaveLength(1);
    },
  );

  it("no longer gets an answer that the policy forbids in the higher class of both requests", async () => {
    const test = await started(open, {
      gateways: ["us", "eu"],
      ...noRetries,
      policy: definePolicy({
        rules: [
          forbid("not-us", { gateway: "us", from: "D3_RESTRICTED" }),
          permit("all", {}, { fallbacks: ["us/lab/m"] }),
        ],
      }),
    });
    test.provider.fail(refused, { when: ({ gateway }) => gateway === "eu" });
    const ask = () => test.gateway.fetch(test.chat({ model: "eu/lab/m" }, key));
    expect((await seen(await ask())).headers["x-service-model"]).toBe("us/lab/m");
    const { organizationId, id } = test.key;
    const raised = { minimumDataClass: "D3_RESTRICTED", defaultDataClass: "D3_RESTRICTED" };
    await test.gateway.keys.update({ organizationId, id, ...raised });
    expect((await ask()).status).toBe(403);
  });

  it("gets no full answer if the policy permits only digests by now", async () => {
    const store = open();
    const { gateway, chat, clock } = await createTestGateway({ store });
    expect((await gateway.fetch(chat({}, key))).status).toBe(200);
    const policy = digestPolicy();
    const strict = await createTestGateway({ store, clock, policy, ids: countingIds(1) });
    const repeat = await strict.gateway.fetch(chat({}, key));
    expect(repeat.status).toBe(409);
    expect(await failureOf(repeat)).toMatchObject({ code: "idempotency_not_kept" });
  });

  it("of another API key or endpoint is unrelated", async () => {
    const test = await started(open);
    const other = await test.createKey({ label: "other" });
    const stranger = await test.createKey({ organizationId: "organization-2" });
    const texts: string[] = [];
    for (const chat of [test.chat, other.chat, stranger.chat])
      texts.push(await (await test.gateway.fetch(chat({}, key))).text());
    texts.push(await (await responsesOf(test.gateway, test.key.secret).post({}, key)).text());
    expect(new Set(texts).size).toBe(4);
    expect(test.provider.calls).toHaveLength(4);
  });

  it("no longer gets the answer of a deleted response", async () => {
    const test = await started(open);
    const responses = responsesOf(test.gateway, test.key.secret);
    const { id } = await responses.create({}, key);
    expect((await responses.remove(id)).status).toBe(200);
    const repeat = await responses.post({}, key);
    expect(await failureOf(repeat)).toMatchObject({ code: "idempotency_not_kept" });
  });

  it("gets no answer again of a request with store: false", async () => {
    const test = await started(open);
    const responses = responsesOf(test.gateway, test.key.secret);
    const ways = [
      () => test.gateway.fetch(test.chat({ store: false }, key)),
      () => responses.post({ store: false }, key),
    ];
    for (const ask of ways) {
      await (await ask()).text();
      expect(await failureOf(ask())).toMatchObject({ code: "idempotency_not_kept" });
    }
    expect(test.provider.calls).toHaveLength(2);
  });

  it.each([
    ["responses may be removed before 24 hours", { retention: { responses: "24h" } }],
    ["transcripts may be removed before 24 hours", { retention: { transcripts: "24h" } }],
  ] as const)("gets no answer again if %s", async (_case, options) => {
    const test = await started(open, options);
    await (await test.gateway.fetch(test.chat({}, key))).text();
    const repeat = await test.gateway.fetch(test.chat({}, key));
    expect(await failureOf(repeat)).toMatchObject({ code: "idempotency_not_kept" });
    expect(test.provider.calls).toHaveLength(1);
  });

  it("appears on the Step as its digest only", async () => {
    const test = await started(open);
    await (await test.gateway.fetch(test.chat({}, key))).text();
    await (await test.gateway.fetch(test.chat())).text();
    const digest = createHash("sha256").update("order-17").digest("hex");
    const digests = (await test.steps()).map(({ idempotencyKeySha256 }) => idempotencyKeySha256);
    expect(digests).toEqual([null, digest]);
  });

  it("marks an SDK's retry without a key that follows the same request within a minute", async () => {
    const test = await started(open);
    const ask = async (fields: Fields, headers: Headers = {}) => {
      await (await test.gateway.fetch(test.chat(fields, headers))).text();
      return (await test.steps())[0];
    };
    const retry = { "x-stainless-retry-count": "1" };
    const first = await ask({});
    expect((await ask({}, retry))?.retryOf).toBe(first?.id);
    expect((await ask({}, { "x-stainless-retry-count": "0" }))?.retryOf).toBeNull();
    const messages = [{ role: "user", content: "Something else" }];
    expect((await ask({ messages }, retry))?.retryOf).toBeNull();
    expect((await ask({}, { ...retry, ...key }))?.retryOf).toBeNull();
    await test.clock.advance("61s");
    expect((await ask({}, retry))?.retryOf).toBeNull();
  });

  it("notifies observers of each repeat, which opens no Step", async () => {
    const test = await started(open);
    await (await test.gateway.fetch(test.chat({}, key))).text();
    const repeat = await test.gateway.fetch(test.chat({}, key));
    const [step] = await test.steps();
    expect(test.log.seen.filter(({ type }) => type === "request.replayed")).toEqual([
      {
        type: "request.replayed",
        at: test.clock.now(),
        requestId: repeat.headers.get("x-request-id"),
        organizationId: "organization-1",
        keyId: test.key.id,
        stepId: step?.id,
        decisionId: step?.decisionId,
      },
    ]);
  });

  it("repeats completed requests at most 300 times at once, and then five times a second", async () => {
    const test = await started(open);
    const ask = async () => {
      const answer = await test.gateway.fetch(test.chat({}, key));
      await answer.text();
      return answer;
    };
    const statuses: number[] = [];
    for (let at = 0; at < 301; at++) statuses.push((await ask()).status);
    expect(new Set(statuses)).toEqual(new Set([200]));
    const refusal = await ask();
    expect([refusal.status, refusal.headers.get("retry-after-ms")]).toEqual([429, "200"]);
    await test.clock.advance(200);
    expect((await ask()).status).toBe(200);
    expect((await ask()).status).toBe(429);
  });
});

describe("an Idempotency-Key", () => {
  it.each([
    ["is empty", ""],
    ["has a space, as if it was sent twice", "a, b"],
    ["has 256 characters", "k".repeat(256)],
    ["is not ASCII", "caf\u00e9"],
  ])("that %s is rejected", async (_case, value) => {
    const test = await createTestGateway();
    const answer = await test.gateway.fetch(test.chat({}, { "idempotency-key": value }));
    expect(answer.status).toBe(400);
    expect(await failureOf(answer)).toEqual({
      type: "invalid_request_error",
      code: "invalid_value",
      param: "Idempotency-Key",
      message:
        "Idempotency-Key must be sent once, with 1 to 255 visible ASCII characters and no spaces.",
    });
    expect(test.provider.calls).toHaveLength(0);
  });

  it("keeps no more than 8 MiB of one API key's running streams, and 64 MiB of all", async () => {
    const test = await createTestGateway();
    const piece = "x".repeat(50_000);
    test.provider.reply({ text: Array<string>(18).fill(piece) }, { times: 100 });
    const keys = await Promise.all(
      Array.from({ length: 9 }, (_, at) => test.createKey({ label: `key ${at}` })),
    );
    const ask = (chat: TestGateway["chat"], name: string) =>
      test.gateway.fetch(chat({ stream: true }, { "idempotency-key": name }));
    const hold = test.provider.hold({ afterEvents: 19 });
    const streams: ReadableStreamDefaultReader<Uint8Array>[] = [];
    // 9 copies of 0.9 MB fit into 8 MiB, and fewer than 75 into 64 MiB.
    for (const { chat } of keys)
      for (let at = 0; at < 10; at++) {
        const stream = (await ask(chat, `${at}`)).body?.getReader();
        if (stream === undefined) return expect.fail("no body");
        await readUntil(stream, 900_000);
        streams.push(stream);
      }
    hold.release();
    for (const stream of streams) await readUntil(stream, Number.POSITIVE_INFINITY);
    const replayed: number[] = [];
    for (const { chat } of keys) {
      const repeats = Array.from({ length: 10 }, (_, at) => ask(chat, `${at}`));
      const statuses = (await Promise.all(repeats)).map(({ status }) => status);
      expect(new Set([...statuses, 200, 409]).size).toBe(2);
      replayed.push(statuses.filter((status) => status === 200).length);
    }
    expect(replayed.slice(0, 8)).toEqual([9, 9, 9, 9, 9, 9, 9, 9]);
    expect(replayed[8]).toBeLessThan(3);
    // The ended streams left their room.
    const [{ chat } = test] = keys.slice(-1);
    await (await ask(chat, "later")).text();
    expect((await ask(chat, "later")).status).toBe(200);
  }, 60_000);

  it("keeps no more calls going after their clients left than limits.drains", async () => {
    const log = eventLog();
    const limits = { drainsPerKey: 1 };
    const test = await createTestGateway({ limits, observers: log.observers });
    const hold = test.provider.hold({ afterEvents: 2 });
    const leave = async (name: string) => {
      const client = new AbortController();
      const request = test.chat({ stream: true }, { "idempotency-key": name });
      const answer = await test.gateway.fetch(new Request(request, { signal: client.signal }));
      client.abort(new Error("gone"));
      await answer.text().catch(() => null);
      return () => test.gateway.fetch(test.chat({ stream: true }, { "idempotency-key": name }));
    };
    const first = await leave("first");
    const second = await leave("second");
    expect(test.provider.calls.map(({ signal }) => signal.aborted)).toEqual([false, true]);
    await log.seeing("step.settled");
    expect(await failureOf(await second())).toMatchObject({ code: "idempotency_interrupted" });
    expect(await failureOf(await first())).toMatchObject({ code: "idempotency_in_progress" });
    hold.release();
    await log.seeing("step.settled", 2);
    expect((await first()).headers.get("idempotency-replayed")).toBe("true");
  });

  it("of 255 characters is accepted", async () => {
    const test = await createTestGateway();
    const headers = { "idempotency-key": `"${"~!".repeat(126)}x"`.padEnd(255, "k") };
    expect((await test.gateway.fetch(test.chat({}, headers))).status).toBe(200);
  });
});

function digestPolicy() {
  return definePolicy({ rules: [permit("digests", {}, { transcript: "digest" })] });
}

/** Asks with a signal, and reads the whole answer. */
async function leaving(
  test: TestGateway,
  ask: Ask,
  fields: Fields,
  signal: AbortSignal,
): Promise<string> {
  const { fetch } = test.gateway;
  const gateway = {
    ...test.gateway,
    fetch: (input: Request | URL | string, init?: RequestInit) =>
      fetch(new Request(input, { ...init, signal })),
  };
  return (await ask({ ...test, gateway }, fields)).text();
}

/** Reads at least this much of a stream, or all of it. */
async function readUntil(
  stream: ReadableStreamDefaultReader<Uint8Array>,
  bytes: number,
): Promise<void> {
  for (let read = 0; read < bytes; ) {
    const { done, value } = await stream.read();
    if (done) return;
    read += value.length;
  }
}

/** An answer's text without the ids and times that differ from gateway to gateway. */
function withoutIds(text: string): string {
  return text.replaceAll(/[0-9a-f]{8}-[0-9a-f-]{27}|"(created|created_at|completed_at)":\d+/g, "");
}
