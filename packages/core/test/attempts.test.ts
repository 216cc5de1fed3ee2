import { type Delivery, type Provider, ProviderError } from "@tollgate/core/provider";
import {
  createTestGateway,
  scriptedProvider,
  type TestGateway,
  type TestGatewayOptions,
} from "@tollgate/testing";
import { describe, expect, it } from "vitest";
import { eventLog } from "./event-log.ts";
import { completionOf, failureOf, streamed } from "./wire.ts";

interface Fault {
  readonly status?: number;
  readonly delivery?: Delivery;
  readonly retryAfterMs?: number;
  readonly timedOut?: boolean;
  readonly code?: string;
  readonly param?: string;
}

const fault = ({ delivery = "answered", ...details }: Fault): ProviderError =>
  new ProviderError("The provider failed.", { reason: "fault", delivery, ...details });

async function stepOf({ gateway, key }: TestGateway) {
  const { data } = await gateway.steps.list({ organizationId: key.organizationId });
  expect(data).toHaveLength(1);
  return data[0];
}

const retried: readonly (readonly [string, Fault])[] = [
  ["nothing was sent", { delivery: "not-sent" }],
  ["408", { status: 408 }],
  ["429", { status: 429 }],
  ["500", { status: 500 }],
  ["503", { status: 503 }],
  ["529", { status: 529 }],
];

const final: readonly (readonly [string, Fault])[] = [
  ["400", { status: 400 }],
  ["401", { status: 401 }],
  ["404", { status: 404 }],
  ["an unknown outcome", { delivery: "unknown" }],
];

describe("an attempt that fails before its first data event", () => {
  it.each(retried)("is retried: %s", async (_, details) => {
    const test = await createTestGateway();
    test.provider.fail(fault(details), { times: 2 });
    test.provider.reply("third time lucky");
    const answer = await test.clock.until(completionOf(test.gateway.fetch(test.chat())));
    expect(answer.choices[0].message.content).toBe("third time lucky");
    expect(await stepOf(test)).toMatchObject({
      outcome: "completed",
      totalTokens: 15,
      costNanoUsd: 20_000,
      attempts: [
        { number: 1, outcome: "failed", reason: "fault", totalTokens: 0, costNanoUsd: 0 },
        { number: 2, outcome: "failed", reason: "fault", totalTokens: 0, costNanoUsd: 0 },
        { number: 3, outcome: "completed", totalTokens: 15, costNanoUsd: 20_000 },
      ],
    });
  });

  it("is also retried for a stream, which shows nothing of it", async () => {
    const test = await createTestGateway();
    test.provider.fail(fault({ status: 500 }), { afterEvents: 1 });
    const sent = await test.clock.until(streamed(test.gateway.fetch(test.chat({ stream: true }))));
    expect(sent.map(({ type }) => type)).toEqual(["chunk", "chunk", "chunk", "done"]);
    expect(test.provider.calls).toHaveLength(2);
  });

  it("is retried at most twice by default", async () => {
    const test = await createTestGateway();
    test.provider.fail(fault({ status: 503 }), { times: 9 });
    const answer = await test.clock.until(test.gateway.fetch(test.chat()));
    expect(answer.status).toBe(503);
    expect(test.provider.calls).toHaveLength(3);
    expect((await stepOf(test))?.attempts).toHaveLength(3);
  });

  it.each(final)("is not retried: %s", async (_, details) => {
    const test = await createTestGateway();
    test.provider.fail(fault(details));
    await test.clock.until(failureOf(test.gateway.fetch(test.chat())));
    expect(test.provider.calls).toHaveLength(1);
  });

  it("with an unknown outcome is retried only if duplicates are allowed, and is charged", async () => {
    const test = await createTestGateway({ retries: { allowDuplicates: true } });
    test.provider.fail(fault({ delivery: "unknown" }));
    const asked = test.gateway.fetch(test.chat({ max_tokens: 7 }));
    expect((await test.clock.until(asked)).status).toBe(200);
    expect(await stepOf(test)).toMatchObject({
      totalTokens: 32,
      attempts: [
        { usageBasis: "estimated", totalTokens: 17 },
        { usageBasis: "reported", totalTokens: 15 },
      ],
    });
  });

  it.each([
    ["output", { type: "usage", usage: { promptTokens: 4, completionTokens: 9 } }, 13],
    ["state", { type: "state", fields: { reasoning_details: ["sealed"] } }, 17],
  ] as const)("is charged if it sent %s before a refusal", async (_, event, totalTokens) => {
    const { provider } = await createTestGateway();
    const early: Provider = {
      ...provider.at("early"),
      async *complete() {
        yield [{ type: "request-sent", host: "early.test", bodySha256: "00" }];
        yield [event];
        throw fault({ status: 429 });
      },
    };
    const test = await createTestGateway({ providers: { early }, retries: { max: 0 } });
    const answer = await test.gateway.fetch(test.chat({ model: "early/a/b", max_tokens: 7 }));
    expect(answer.status).toBe(429);
    expect(await stepOf(test)).toMatchObject({ outcome: "failed", totalTokens });
  });

  it("waits as long as the provider asks, up to a limit", async () => {
    const test = await createTestGateway();
    const at: number[] = [];
    const note = (): void => {
      at.push(test.clock.monotonic());
    };
    test.provider.reply(
      () => {
        note();
        return { failure: { error: fault({ status: 429, retryAfterMs: 7_000 }) } };
      },
      { times: 1 },
    );
    test.provider.reply(() => {
      note();
      return "OK";
    });
    expect((await test.clock.until(test.gateway.fetch(test.chat()))).status).toBe(200);
    expect((at[1] ?? 0) - (at[0] ?? 0)).toBe(7_000);

    test.provider.fail(fault({ status: 429, retryAfterMs: 11_000 }));
    const answer = await test.gateway.fetch(test.chat());
    expect([answer.status, answer.headers.get("retry-after")]).toEqual([429, "11"]);
  });

  it("counts as one request on a budget, however many attempts follow", async () => {
    const test = await createTestGateway({
      budgets: [{ id: "requests", limit: { requests: 1 }, period: "day" }],
    });
    test.provider.fail(fault({ status: 500 }), { times: 2 });
    expect((await test.clock.until(test.gateway.fetch(test.chat()))).status).toBe(200);
    expect((await test.gateway.budgets.status({ id: "requests" })).data).toMatchObject([
      { settled: 1, held: 0 },
    ]);
  });
});

describe("an attempt that fails after its first data event", () => {
  it("is final, because the client has seen part of the answer", async () => {
    const test = await createTestGateway({ retries: { allowDuplicates: true } });
    test.provider.fail(fault({ status: 500 }), { afterEvents: 2 });
    const sent = await streamed(test.gateway.fetch(test.chat({ stream: true })));
    expect(sent.map(({ type }) => type)).toEqual(["chunk", "chunk", "error", "done"]);
    expect(test.provider.calls).toHaveLength(1);
  });
});

describe("a provider's failure as the caller sees it (section 7)", () => {
  const rows: readonly (readonly [
    string,
    Fault,
    number,
    Record<string, unknown>,
    string | null,
  ])[] = [
    [
      "400",
      { status: 400, code: "string_above_max_length", param: "messages" },
      400,
      { type: "invalid_request_error", code: "upstream_rejected", param: "messages" },
      "false",
    ],
    ...["budget_exceeded", "invalid_api_key", "policy_denied", "unknown_parameter"].map(
      (code) =>
        [
          `400 with our own code ${code}`,
          { status: 400, code },
          400,
          {
            type: "invalid_request_error",
            code: "upstream_rejected",
            message: "The provider rejected the request.",
          },
          "false",
        ] as const,
    ),
    [
      "400 for the context",
      { status: 400, code: "context_length_exceeded", param: "messages" },
      400,
      {
        type: "invalid_request_error",
        code: "context_length_exceeded",
        param: "messages",
        message: "The request exceeds this model's maximum context length. Shorten its messages.",
      },
      "false",
    ],
    [
      "400 for the content",
      { status: 400, code: "content_policy_violation" },
      400,
      {
        type: "invalid_request_error",
        code: "content_filter",
        message: "The provider's content filter rejected the request.",
      },
      "false",
    ],
    [
      "an overload",
      { status: 529, code: "overloaded_error" },
      503,
      {
        type: "server_error",
        code: "upstream_error",
        message: "The provider is overloaded. Try again later.",
      },
      "true",
    ],
    [
      "a rate limit without its status",
      { status: 200, code: "rate_limit_error" },
      429,
      { type: "rate_limit_error", code: "rate_limit_exceeded" },
      null,
    ],
    [
      "413",
      { status: 413 },
      400,
      { type: "invalid_request_error", code: "upstream_rejected" },
      "false",
    ],
    [
      "422",
      { status: 422 },
      400,
      { type: "invalid_request_error", code: "upstream_rejected" },
      "false",
    ],
    ["401", { status: 401 }, 502, { type: "server_error", code: "upstream_error" }, "false"],
    ["403", { status: 403 }, 502, { type: "server_error", code: "upstream_error" }, "false"],
    ["402", { status: 402 }, 502, { type: "server_error", code: "upstream_error" }, "false"],
    ["408", { status: 408 }, 504, { type: "server_error", code: "upstream_error" }, "true"],
    [
      "404",
      { status: 404 },
      404,
      { type: "invalid_request_error", code: "model_not_found", param: "model" },
      "false",
    ],
    [
      "410",
      { status: 410 },
      404,
      { type: "invalid_request_error", code: "model_not_found", param: "model" },
      "false",
    ],
    ["429", { status: 429 }, 429, { type: "rate_limit_error", code: "rate_limit_exceeded" }, null],
    ["500", { status: 500 }, 502, { type: "server_error", code: "upstream_error" }, "true"],
    ["503", { status: 503 }, 503, { type: "server_error", code: "upstream_error" }, "true"],
    ["504", { status: 504 }, 504, { type: "server_error", code: "upstream_error" }, "true"],
    [
      "nothing sent",
      { delivery: "not-sent" },
      502,
      { type: "server_error", code: "upstream_error" },
      "true",
    ],
    [
      "an unknown outcome",
      { delivery: "unknown" },
      502,
      { type: "server_error", code: "upstream_error" },
      "false",
    ],
    [
      "a timeout",
      { delivery: "unknown", timedOut: true },
      504,
      { type: "server_error", code: "upstream_error" },
      "false",
    ],
  ];
  it.each(rows)("%s", async (_, details, status, error, retry) => {
    for (const stream of [false, true]) {
      const test = await createTestGateway({ retries: { max: 0 } });
      test.provider.fail(fault(details));
      const answer = await test.gateway.fetch(test.chat({ stream }));
      expect(answer.status).toBe(status);
      expect(answer.headers.get("content-type")).toBe("application/json");
      expect(answer.headers.get("x-should-retry")).toBe(retry);
      expect(answer.headers.get("retry-after")).toBe(status === 429 ? "1" : null);
      expect(answer.headers.get("x-service-data-sensitivity")).toBe("D1_INTERNAL");
      expect(answer.headers.get("x-service-policy-decision-id")).toMatch(/^[0-9a-f-]{36}$/);
      expect(await failureOf(answer)).toEqual({
        param: null,
        message: expect.any(String),
        ...error,
      });
      expect(await stepOf(test)).toMatchObject({ outcome: "failed", reason: "fault" });
    }
  });

  it("becomes an upstream error, without the text of unexpected errors", async () => {
    const test = await createTestGateway({ retries: { max: 0 } });
    test.provider.fail(new Error("a secret of the upstream"));
    const answer = await test.gateway.fetch(test.chat());
    expect(answer.status).toBe(502);
    expect(await answer.text()).not.toContain("secret");
    expect(await stepOf(test)).toMatchObject({ outcome: "failed", reason: "provider_fault" });
  });
});

describe("deadlines", () => {
  it("end an attempt that sends no request within 10 seconds, which costs nothing and is retried", async () => {
    const hung: Provider = {
      contract: 1,
      connection: "platform",
      models: {},
      open: true,
      vendor: null,
      problems: [],
      // Like a credential that is never found.
      async *complete() {
        await new Promise(() => {});
        yield [];
      },
      async close() {},
    };
    const test = await createTestGateway({ providers: { hung }, retries: { max: 1, backoff: 0 } });
    const answering = test.gateway.fetch(test.chat({ model: "hung/a/b" }));
    const answer = await test.clock.until(answering);
    expect([answer.status, answer.headers.get("x-should-retry")]).toEqual([504, "true"]);
    expect(test.clock.monotonic()).toBe(20_000);
    const never = { reason: "connect_timeout", totalTokens: 0, host: null };
    expect(await stepOf(test)).toMatchObject({ outcome: "failed", attempts: [never, never] });
  });

  it("count the wait for the first event from when the request is sent", async () => {
    const slow = scriptedProvider();
    const provider: Provider = {
      ...slow,
      async *complete(call) {
        await new Promise<void>((resolve) => test.clock.after(7_000, resolve));
        yield* slow.complete(call);
      },
    };
    const deadlines = { connect: "8s", firstByte: "10s" } as const;
    const test = await createTestGateway({ deadlines, providers: { slow: provider } });
    slow.reply(async () => {
      await new Promise<void>((resolve) => test.clock.after(9_000, resolve));
      return "in time";
    });
    const answer = test.gateway.fetch(test.chat({ model: "slow/a/b", stream: true }));
    const text = answer.then((streaming) => streaming.text());
    expect(await test.clock.until(text)).toContain("in time");
  });

  it("end a stream without a first event after 2 minutes, with no retry", async () => {
    const test = await createTestGateway();
    const hold = test.provider.hold();
    const answering = streamed(test.gateway.fetch(test.chat({ stream: true })));
    await hold.reached();
    await test.clock.advance("119s");
    expect(test.provider.calls[0]?.signal.aborted).toBe(false);
    await test.clock.advance("2s");
    expect((await answering).map(({ type }) => type).slice(-2)).toEqual(["error", "done"]);
    expect(test.provider.calls).toHaveLength(1);
    expect(await stepOf(test)).toMatchObject({ outcome: "failed", reason: "silent" });
  });

  it("end a plain answer after 10 minutes with 504, with no retry", async () => {
    const test = await createTestGateway();
    const hold = test.provider.hold();
    const answering = test.gateway.fetch(test.chat());
    await hold.reached();
    await test.clock.advance("599s");
    expect(test.provider.calls[0]?.signal.aborted).toBe(false);
    await test.clock.advance("2s");
    const answer = await answering;
    expect([answer.status, (await failureOf(answer)).code]).toEqual([504, "upstream_error"]);
    expect(test.provider.calls).toHaveLength(1);
    expect(await stepOf(test)).toMatchObject({ outcome: "failed", reason: "silent" });
  });

  it("end a stream that falls silent between two events", async () => {
    const test = await createTestGateway({ deadlines: { idle: "10s", heartbeat: "1m" } });
    test.provider.hold({ afterEvents: 2 });
    const reading = streamed(test.gateway.fetch(test.chat({ stream: true })));
    await test.clock.advance("21s");
    expect((await reading).map(({ type }) => type)).toEqual(["chunk", "chunk", "error", "done"]);
    expect(await stepOf(test)).toMatchObject({ outcome: "failed", reason: "silent" });
  });

  it("don't count the time spent waiting for the client", async () => {
    const test = await createTestGateway({ deadlines: { idle: "10s" } });
    test.provider.reply({ text: ["a", "b"] });
    const answer = await test.gateway.fetch(test.chat({ stream: true }));
    const reader = answer.body?.getReader();
    await reader?.read();
    await test.clock.advance("5m");
    let rest = "";
    for (let next = await reader?.read(); next && !next.done; next = await reader?.read())
      rest += Buffer.from(next.value).toString();
    expect(rest).toMatch(/"finish_reason":"stop".*\n\ndata: \[DONE\]\n\n$/);
  });

  it("end an answer that nobody reads", async () => {
    const log = eventLog();
    const { observers } = log;
    const test = await createTestGateway({ observers, deadlines: { total: "8s" } });
    test.provider.reply({ text: ["Hel", "lo"] });
    const answer = await test.gateway.fetch(test.chat({ stream: true }));
    await test.clock.advance("7s");
    expect(await stepOf(test)).toMatchObject({ outcome: "open" });
    await test.clock.advance("1s");
    await log.seeing("step.settled");
    expect(await stepOf(test)).toMatchObject({ outcome: "failed", reason: "deadline" });
    expect(test.provider.calls[0]?.signal.aborted).toBe(true);
    await answer.body?.cancel();
  });

  it("limit the whole answer, including retries", async () => {
    const test = await createTestGateway({ deadlines: { total: "8s" }, retries: { max: 9 } });
    const busy = fault({ status: 503, retryAfterMs: 3_000 });
    test.provider.fail(busy, { times: 9 });
    const answer = await test.clock.until(test.gateway.fetch(test.chat()));
    expect(answer.status).toBe(504);
    expect(test.clock.monotonic()).toBe(8_000);
    expect(test.provider.calls).toHaveLength(3);
    expect(await stepOf(test)).toMatchObject({ outcome: "failed", reason: "deadline" });
  });
});

describe("a Step that ends while it waits to repeat an attempt that used nothing", () => {
  const refused: readonly (readonly [string, Fault])[] = [
    ["that was not sent", { delivery: "not-sent" }],
    ["that the provider answered with 429", { status: 429 }],
    ["that the provider answered with 503", { status: 503 }],
  ];

  /** A request whose first attempt has failed. Its retry would follow 5 seconds later. */
  async function waiting(details: Fault, options: TestGatewayOptions = {}) {
    const log = eventLog();
    const test = await createTestGateway({
      observers: log.observers,
      budgets: [{ id: "b", limit: { usd: 1 }, period: "day" }],
      ...options,
    });
    test.provider.fail(fault({ ...details, retryAfterMs: 5_000 }));
    const client = new AbortController();
    const request = test.chat({}, { "idempotency-key": "key" });
    const answer = test.gateway.fetch(new Request(request, { signal: client.signal }));
    await log.seeing("attempt.ended");
    return { ...test, log, client, answer };
  }

  const free = [{ totalTokens: 0, costNanoUsd: 0, usageBasis: "reported" }];

  it.each(refused)(
    "%s costs nothing and frees its key if the client leaves",
    async (_, details) => {
      const test = await waiting(details, { onDisconnect: "abort" });
      test.client.abort();
      await expect(test.answer).rejects.toThrow();
      await test.log.seeing("step.settled");
      expect(await stepOf(test)).toMatchObject({ outcome: "cancelled", attempts: free });
      const { data } = await test.gateway.budgets.status({ id: "b" });
      expect(data).toMatchObject([{ settled: 0, held: 0 }]);
      const again = await test.gateway.fetch(test.chat({}, { "idempotency-key": "key" }));
      expect(again.status).toBe(200);
    },
  );

  it.each(refused)(
    "%s costs nothing and may be retried if the deadline passes",
    async (_, details) => {
      const test = await waiting(details, { deadlines: { total: "4s" } });
      const answer = await test.clock.until(test.answer);
      expect(answer.status).toBe(504);
      expect(answer.headers.get("x-should-retry")).toBe("true");
      expect(await stepOf(test)).toMatchObject({ reason: "deadline", attempts: free });
    },
  );

  it.each(refused)(
    "%s says that the gateway was closed, and that a retry is safe",
    async (_, details) => {
      const test = await waiting(details);
      await test.clock.until(test.gateway.close({ within: "1s" }));
      const answer = await test.answer;
      expect(await failureOf(answer)).toMatchObject({
        code: "overloaded",
        message: "The gateway was closed before the answer was complete.",
      });
      expect(answer.status).toBe(503);
      expect(answer.headers.get("x-should-retry")).toBe("true");
      expect(answer.headers.get("retry-after")).toBe("1");
    },
  );

  it("records how the attempt itself ended, as the event has it, apart from its Step", async () => {
    const left = await waiting({ status: 503 }, { onDisconnect: "abort" });
    left.client.abort();
    await expect(left.answer).rejects.toThrow();
    await left.log.seeing("step.settled");
    expect(await stepOf(left)).toMatchObject({ outcome: "cancelled", reason: "client_closed" });
    const late = await waiting({ status: 503 }, { deadlines: { total: "4s" } });
    await late.clock.until(late.answer);
    expect(await stepOf(late)).toMatchObject({ outcome: "failed", reason: "deadline" });
    for (const test of [left, late]) {
      const attempt = { outcome: "failed", reason: "fault" };
      expect(await stepOf(test)).toMatchObject({ attempts: [attempt] });
      expect(test.log.seen).toContainEqual(
        expect.objectContaining({ type: "attempt.ended", ...attempt }),
      );
    }
  });
});
