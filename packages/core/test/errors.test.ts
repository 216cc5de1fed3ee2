import { definePolicy, forbid, permit } from "@tollgate/core/policy";
import { memoryStore } from "@tollgate/store-memory";
import { createTestGateway, type TestGateway, type TestGatewayOptions } from "@tollgate/testing";
import { describe, expect, it } from "vitest";
import { failureOf } from "./wire.ts";
import { written } from "./written.ts";

/** A refused request, and its exact answer. */
interface Refusal {
  readonly name: string;
  readonly options?: TestGatewayOptions;
  readonly request: (test: TestGateway) => Request;
  readonly status: number;
  readonly error: { readonly type?: string; readonly code: string; readonly param?: string | null };
  readonly headers?: Readonly<Record<string, string>>;
}

const unknownId = "7b6f0c4e-1111-4222-8333-444455556666";

function body(test: TestGateway, text: string | Uint8Array, headers: Record<string, string> = {}) {
  return new Request("http://in-process/v1/chat/completions", {
    method: "POST",
    headers: {
      authorization: `Bearer ${test.key.secret}`,
      "content-type": "application/json",
      ...headers,
    },
    body: text,
  });
}

const field = (
  name: string,
  fields: Record<string, unknown>,
  code: string,
  param: string,
): Refusal => ({
  name,
  request: ({ chat }) => chat({ stream: true, ...fields }),
  status: 400,
  error: { code, param },
});

/** HTTP requires it with a 401. Without it, some clients don't read the body. */
const challenge = { "www-authenticate": "Bearer" };

const refusals: readonly Refusal[] = [
  {
    name: "no Authorization",
    request: ({ chat }) => {
      const request = chat({ stream: true });
      request.headers.delete("authorization");
      return request;
    },
    status: 401,
    headers: challenge,
    error: { code: "missing_api_key" },
  },
  {
    name: "an Authorization of another scheme",
    request: ({ chat }) => chat({}, { authorization: "Basic dXNlcjpwYXNz" }),
    status: 401,
    headers: challenge,
    error: { code: "missing_api_key" },
  },
  {
    name: "an invalid key",
    request: ({ chat }) => chat({ stream: true }, { authorization: "Bearer tg_nothing" }),
    status: 401,
    headers: challenge,
    error: { code: "invalid_api_key" },
  },
  {
    name: "another content type",
    request: (test) => body(test, "{}", { "content-type": "text/plain" }),
    status: 415,
    error: { code: "unsupported_media_type" },
  },
  {
    name: "a compressed body",
    request: (test) => body(test, "{}", { "content-encoding": "gzip" }),
    status: 415,
    error: { code: "unsupported_media_type" },
  },
  {
    name: "a body that is too large",
    options: { limits: { bodyBytes: 1_000 } },
    request: ({ chat }) => chat({ stream: true, user: "x".repeat(1_000) }),
    status: 413,
    error: { code: "request_too_large" },
  },
  {
    name: "headers that are too large",
    request: ({ chat }) => chat({}, { "x-large": "x".repeat(16_384) }),
    status: 413,
    error: { code: "request_too_large" },
  },
  ...(
    ["", "{", "[]", '"text"', "null", '{"model":1,"model":2}', '{"user":"\\ud800"}'] as const
  ).map((text) => ({
    name: `the body ${JSON.stringify(text)}`,
    request: (test: TestGateway) => body(test, text),
    status: 400,
    error: { code: "invalid_json", param: null },
  })),
  {
    name: "a body that is not UTF-8",
    request: (test) => body(test, new Uint8Array([0x7b, 0xff, 0x7d])),
    status: 400,
    error: { code: "invalid_json" },
  },
  field("no model", { model: undefined }, "missing_required_parameter", "model"),
  field("no messages", { messages: undefined }, "missing_required_parameter", "messages"),
  field("an unknown field", { top_k: 3 }, "unknown_parameter", "top_k"),
  field("audio", { audio: { voice: "x" } }, "unsupported_parameter", "audio"),
  field("a hosted tool", { tools: [{ type: "web_search" }] }, "unsupported_value", "tools[0].type"),
  field("two choices", { n: 2 }, "unsupported_value", "n"),
  field("a wrong type", { temperature: "hot" }, "invalid_type", "temperature"),
  field("a value out of range", { temperature: 3 }, "invalid_value", "temperature"),
  field("metadata of a number", { metadata: { a: 1 } }, "invalid_type", "metadata.a"),
  field("a malformed session_id", { session_id: "mine" }, "invalid_value", "session_id"),
  {
    name: "stream that is not a boolean",
    request: ({ chat }) => chat({ stream: "yes" }),
    status: 400,
    error: { code: "invalid_type", param: "stream" },
  },
  {
    name: "an unknown data class",
    request: ({ chat }) => chat({ stream: true }, { "x-service-data-sensitivity": "D9" }),
    status: 400,
    error: { code: "invalid_data_class", param: "X-Service-Data-Sensitivity" },
  },
  {
    name: "a data class below the key's floor",
    options: { key: { minimumDataClass: "D1_INTERNAL" } },
    request: ({ chat }) => chat({ stream: true }, { "x-service-data-sensitivity": "D0_PUBLIC" }),
    status: 400,
    error: { code: "data_class_below_floor", param: "X-Service-Data-Sensitivity" },
  },
  ...["test/scripted", "elsewhere/tollgate/scripted", "//", "test"].map((model) => ({
    name: `the model ${model}`,
    request: ({ chat }: TestGateway) => chat({ model, stream: true }),
    status: 404,
    error: { code: "model_not_found", param: "model" },
  })),
  {
    name: "an unknown session",
    request: ({ chat }) => chat({ session_id: unknownId, stream: true }),
    status: 404,
    error: { code: "session_not_found", param: "session_id" },
  },
  {
    name: "an unknown turn",
    request: ({ chat }) => chat({ turn_id: unknownId, stream: true }),
    status: 404,
    error: { code: "turn_not_found", param: "turn_id" },
  },
  {
    name: "an unknown path",
    request: () => new Request("http://in-process/v1/audio/speech", { method: "POST" }),
    status: 404,
    error: { code: "not_found" },
  },
  {
    name: "a method that the path doesn't support",
    request: () => new Request("http://in-process/v1/chat/completions"),
    status: 405,
    error: { code: "method_not_allowed" },
    headers: { allow: "POST" },
  },
];

function headersOf(answer: Response): Record<string, string> {
  return Object.fromEntries(answer.headers);
}

describe("a request that is refused before a decision (section 7)", () => {
  it.each(refusals)("$name: $status $error.code", async (refusal) => {
    const test = await createTestGateway(refusal.options);
    const answer = await test.gateway.fetch(refusal.request(test));
    expect(answer.status).toBe(refusal.status);
    expect(headersOf(answer)).toEqual({
      "content-type": "application/json",
      "x-request-id": expect.stringMatching(/^[0-9a-f-]{36}$/),
      "x-should-retry": "false",
      ...refusal.headers,
    });
    expect(await failureOf(answer)).toEqual({
      message: expect.any(String),
      type: "invalid_request_error",
      param: null,
      ...refusal.error,
    });
    expect(test.provider.calls).toEqual([]);
    expect(await written(test.gateway)).toEqual({ steps: 0, sessions: 0, decisions: 0 });
  });

  it("needs the organization's key for a customer-owned gateway: 400 connection_required", async () => {
    const { provider } = await createTestGateway();
    const test = await createTestGateway({
      providers: { own: { ...provider.at("own"), connection: "customer" } },
    });
    const answer = await test.gateway.fetch(test.chat({ model: "own/a/b", stream: true }));
    expect(answer.status).toBe(400);
    expect(await failureOf(answer)).toMatchObject({ code: "connection_required", param: "model" });
    expect(provider.calls).toEqual([]);
    expect(await written(test.gateway)).toEqual({ steps: 0, sessions: 0, decisions: 0 });
  });
});

const denials: readonly (Refusal & { readonly effect: "deny" | "permit" })[] = [
  {
    name: "a policy's denial",
    options: {
      policy: definePolicy({
        rules: [permit("all"), forbid("never", {}, { reason: "Not today." })],
      }),
    },
    request: ({ chat }) => chat({ stream: true }),
    status: 403,
    error: { type: "permission_error", code: "policy_denied" },
    headers: { "x-should-retry": "false" },
    effect: "deny",
  },
  {
    name: "a model that the key doesn't allow",
    options: { key: { models: ["test/other/*"] } },
    request: ({ chat }) => chat({ stream: true }),
    status: 403,
    error: { type: "permission_error", code: "policy_denied" },
    headers: { "x-should-retry": "false" },
    effect: "deny",
  },
  {
    name: "a budget that is exhausted",
    options: { budgets: [{ id: "none", limit: { requests: 0 }, period: "hour" }] },
    request: ({ chat }) => chat({ stream: true }),
    status: 429,
    error: { type: "insufficient_quota", code: "budget_exceeded" },
    headers: { "x-should-retry": "false", "retry-after": "3600" },
    effect: "permit",
  },
  {
    name: "a budget that never resets",
    options: { budgets: [{ id: "none", limit: { usd: 0 }, period: "total" }] },
    request: ({ chat }) => chat(),
    status: 429,
    error: { type: "insufficient_quota", code: "budget_exceeded" },
    headers: { "x-should-retry": "false" },
    effect: "permit",
  },
  {
    name: "no price under a hard budget in US dollars",
    options: { budgets: [{ id: "usd", limit: { usd: 5 }, period: "day" }], models: {} },
    request: ({ chat }) => chat({ stream: true }),
    status: 403,
    error: { type: "permission_error", code: "price_unknown", param: "model" },
    headers: { "x-should-retry": "false" },
    effect: "permit",
  },
];

describe("a request that is refused after its decision", () => {
  it.each(denials)("$name: $status $error.code", async (denial) => {
    const test = await createTestGateway(denial.options);
    const answer = await test.gateway.fetch(denial.request(test));
    const { data } = await test.gateway.decisions.list({
      organizationId: test.key.organizationId,
    });
    expect(answer.status).toBe(denial.status);
    expect(data).toMatchObject([{ effect: denial.effect }]);
    expect(headersOf(answer)).toEqual({
      "content-type": "application/json",
      "x-request-id": expect.any(String),
      "x-service-data-sensitivity": "D1_INTERNAL",
      "x-service-policy-decision-id": data[0]?.id,
      ...denial.headers,
    });
    expect(await failureOf(answer)).toEqual({
      message: expect.any(String),
      param: null,
      ...denial.error,
    });
    expect(test.provider.calls).toEqual([]);
    expect(await written(test.gateway)).toEqual({ steps: 0, sessions: 0, decisions: 1 });
  });
});

describe("a fault that isn't the caller's", () => {
  it("gives 503 evidence_unavailable if the store can't read the key", async () => {
    const store = memoryStore();
    const broken = {
      ...store,
      keys: { ...store.keys, findByDigest: () => Promise.reject(new Error("the disk is gone")) },
    };
    const { gateway, key, chat } = await createTestGateway({ store: broken });
    const models = new Request("http://in-process/v1/models", {
      headers: { authorization: `Bearer ${key.secret}` },
    });
    for (const request of [chat(), chat({ stream: true }), models]) {
      const answer = await gateway.fetch(request);
      expect([answer.status, answer.headers.get("x-should-retry")]).toEqual([503, "true"]);
      expect(await failureOf(answer)).toEqual({
        message: "The request could not be recorded, so it was not completed.",
        type: "server_error",
        param: null,
        code: "evidence_unavailable",
      });
    }
  });

  it("gives 400 without a retry if the host has already read the body", async () => {
    const { gateway, chat } = await createTestGateway();
    const request = chat({ stream: true });
    await request.text();
    const answer = await gateway.fetch(request);
    expect([answer.status, answer.headers.get("x-should-retry")]).toEqual([400, "false"]);
    expect(await failureOf(answer)).toMatchObject({ code: "invalid_json" });
  });
});

describe("the order of refusals", () => {
  const wrong: readonly (readonly [string, string, (test: TestGateway) => Request])[] = [
    [
      "the key before the content type",
      "missing_api_key",
      (test) => body(test, "{", { authorization: "", "content-type": "text/plain" }),
    ],
    [
      "the content type before the JSON",
      "unsupported_media_type",
      (test) => body(test, "{", { "content-type": "text/plain" }),
    ],
    ["the JSON before the parameters", "invalid_json", (test) => body(test, '{"top_k":1,}')],
    [
      "the parameters before the data class",
      "unknown_parameter",
      ({ chat }) => chat({ top_k: 1 }, { "x-service-data-sensitivity": "D9" }),
    ],
    [
      "the data class before the model",
      "invalid_data_class",
      ({ chat }) => chat({ model: "x/y/z" }, { "x-service-data-sensitivity": "D9" }),
    ],
    [
      "the model before the named ids",
      "model_not_found",
      ({ chat }) => chat({ model: "x/y/z", session_id: unknownId }),
    ],
    [
      "the named ids before the policy",
      "session_not_found",
      ({ chat }) => chat({ session_id: unknownId }),
    ],
    ["the policy before the budget", "policy_denied", ({ chat }) => chat()],
  ];
  it.each(wrong)("is %s", async (_, code, request) => {
    const test = await createTestGateway({
      policy: definePolicy({ rules: [forbid("never")] }),
      budgets: [{ id: "none", limit: { requests: 0 }, period: "hour" }],
    });
    expect(await failureOf(test.gateway.fetch(request(test)))).toMatchObject({ code });
  });
});
