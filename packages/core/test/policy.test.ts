import {
  combine,
  definePolicy,
  forbid,
  type Policy,
  type PolicyFacts,
  permit,
} from "@tollgate/core/policy";
import { createTestGateway } from "@tollgate/testing";
import { describe, expect, it } from "vitest";
import { completionOf, failureOf } from "./wire.ts";

const image = [{ type: "image_url", image_url: { url: "https://images.test/a.png" } }];
const tools = [{ type: "function", function: { name: "f" } }];
const permitting = definePolicy({ rules: [permit("all")] });

describe("the policy", () => {
  it("decides by rules: forbid overrides permit, and requests that no rule permits are denied", async () => {
    const policy = definePolicy({
      rules: [
        permit("text", { tools: false, images: false }),
        permit("images", { images: true, upTo: "D1_INTERNAL" }),
        forbid("no-preview", { model: "*/*/*-preview" }, { reason: "Not released." }),
      ],
    });
    const { gateway, key, chat } = await createTestGateway({ policy });
    const statuses = async (fields: Record<string, unknown>, dataClass = "D1_INTERNAL") =>
      (await gateway.fetch(chat(fields, { "x-service-data-sensitivity": dataClass }))).status;
    expect(await statuses({})).toBe(200);
    expect(await statuses({ tools })).toBe(403);
    const messages = [{ role: "user", content: image }];
    expect(await statuses({ messages })).toBe(200);
    expect(await statuses({ messages }, "D2_CONFIDENTIAL")).toBe(403);
    expect(await failureOf(gateway.fetch(chat({ model: "test/a/b-preview" })))).toMatchObject({
      code: "policy_denied",
      message: "The policy denied this request by rule no-preview: Not released.",
    });
    expect((await failureOf(gateway.fetch(chat({ tools })))).message).toBe(
      "The policy denied this request: No rule permits this request.",
    );
    const { data } = await gateway.decisions.list({ organizationId: key.organizationId });
    expect(data.map(({ effect, rules }) => [effect, rules])).toEqual([
      ["deny", []],
      ["deny", ["no-preview"]],
      ["deny", []],
      ["permit", ["images"]],
      ["deny", []],
      ["permit", ["text"]],
    ]);
    expect(new Set(data.map(({ policyVersion }) => policyVersion)).size).toBe(1);
  });

  it("decides on the facts of the request", async () => {
    const asked: PolicyFacts[] = [];
    const policy = definePolicy({
      version: "facts-1",
      decide(facts) {
        asked.push(facts);
        return { effect: "permit", rules: ["all"] };
      },
    });
    const { gateway, key, chat } = await createTestGateway({ policy });
    const format = { type: "json_object" };
    await gateway.fetch(
      chat({ store: true, tools, response_format: format, max_completion_tokens: 100 }),
    );
    expect(asked).toEqual([
      {
        organization: "organization-1",
        user: "user-1",
        key: key.id,
        source: "api",
        dataClass: "D1_INTERNAL",
        gateway: "test",
        vendor: "tollgate",
        model: "scripted",
        listed: true,
        connection: "platform",
        store: true,
        tools: true,
        images: false,
        structuredOutput: true,
        serviceTier: "default",
        estimatedInputTokens: expect.any(Number),
        estimatedOutputTokens: 100,
        estimatedCostNanoUsd: (asked[0]?.estimatedInputTokens ?? 0) * 1_000 + 100 * 2_000,
      },
    ]);
    const { data } = await gateway.decisions.list({ organizationId: key.organizationId });
    expect(data).toMatchObject([{ policyVersion: "facts-1", rules: ["all"], facts: asked[0] }]);
  });

  it.each([
    [
      "throws",
      () => {
        throw new Error("a secret of the policy");
      },
    ],
    ["answers nonsense", () => JSON.parse('{"effect":"maybe"}')],
    ["answers nothing", () => JSON.parse("null")],
    [
      "changes its facts",
      (facts: PolicyFacts) => {
        Object.assign(facts, { dataClass: "D0_PUBLIC" });
        return { effect: "permit" as const, rules: ["all"] };
      },
    ],
  ])("denies by rule policy-error when it %s", async (_, decide) => {
    const policy = definePolicy({ version: "broken", decide });
    const { gateway, provider, key, chat } = await createTestGateway({ policy });
    const answer = await gateway.fetch(chat({ stream: true }));
    expect(answer.status).toBe(403);
    expect(await failureOf(answer)).toMatchObject({
      code: "policy_denied",
      message: expect.not.stringContaining("secret"),
    });
    const { data } = await gateway.decisions.list({ organizationId: key.organizationId });
    const rules = ["policy-error"];
    expect(data).toMatchObject([{ effect: "deny", rules, facts: { dataClass: "D1_INTERNAL" } }]);
    expect(provider.calls).toEqual([]);
  });

  it.each([
    ["alone", (broken: Policy) => broken],
    ["combined with others", (broken: Policy) => combine(broken, permitting)],
  ])("denies by rule policy-error when it is async, %s", async (_, policyOf) => {
    // An unhandled rejection would end the process, and this test run.
    const decide = async () => {
      throw new Error("a policy's own");
    };
    const policy = policyOf({ ...permitting, ...JSON.parse("{}"), decide });
    const { gateway, key, chat } = await createTestGateway({ policy });
    expect((await gateway.fetch(chat())).status).toBe(403);
    const { data } = await gateway.decisions.list({ organizationId: key.organizationId });
    expect(data).toMatchObject([{ effect: "deny", rules: ["policy-error"] }]);
    await new Promise((resolve) => setTimeout(resolve, 0));
  });

  it("leaves the facts of a host that asks combined policies itself as they are", () => {
    const facts = { dataClass: "D1_INTERNAL", session: { dataClass: "D0_PUBLIC" } };
    const { effect } = combine(permitting).decide(Object(facts), ["D1_INTERNAL"]);
    expect([effect, Object.isFrozen(facts), Object.isFrozen(facts.session)]).toEqual([
      "permit",
      false,
      false,
    ]);
  });

  it("can't change the order of the data classes", async () => {
    const policy: Policy = {
      ...permitting,
      decide(_facts, dataClasses) {
        Object(dataClasses).reverse();
        return { effect: "permit", rules: ["all"] };
      },
    };
    const { gateway, provider, key, chat } = await createTestGateway({ policy });
    expect((await gateway.fetch(chat())).status).toBe(403);
    const low = { minimumDataClass: "D3_RESTRICTED", defaultDataClass: "D0_PUBLIC" };
    const { organizationId, userId } = key;
    const creating = gateway.keys.create({ organizationId, userId, label: "low", ...low });
    await expect(creating).rejects.toMatchObject({ code: "invalid_argument" });
    expect(provider.calls).toEqual([]);
  });

  it("is recorded as it decided, even if it returns the same object each time", async () => {
    const verdict = { effect: "permit" as const, rules: [""], choice: "not a verdict's" };
    const decide = ({ model }: PolicyFacts) => {
      verdict.rules[0] = model;
      return verdict;
    };
    const policy = definePolicy({ version: "1", decide });
    const { gateway, key, chat } = await createTestGateway({ policy });
    for (const model of ["test/a/one", "test/a/two"])
      expect((await gateway.fetch(chat({ model }))).status).toBe(200);
    const { data } = await gateway.decisions.list({ organizationId: key.organizationId });
    expect(data.map(({ rules }) => rules)).toEqual([["two"], ["one"]]);
    expect(data[0]).not.toHaveProperty("choice");
  });

  it("permits everything if there is none, and records this", async () => {
    const { gateway, key, chat } = await createTestGateway();
    await gateway.fetch(chat());
    const { data } = await gateway.decisions.list({ organizationId: key.organizationId });
    expect(data).toMatchObject([{ effect: "permit", rules: ["no-policy"], policyVersion: "none" }]);
  });

  it("comes after the key's allowlist, which denies by rule key-models", async () => {
    const { gateway, key, chat } = await createTestGateway({
      key: { models: ["test/tollgate/*"] },
    });
    expect((await gateway.fetch(chat())).status).toBe(200);
    expect((await gateway.fetch(chat({ model: "test/other/model" }))).status).toBe(403);
    const { data } = await gateway.decisions.list({ organizationId: key.organizationId });
    expect(data.map(({ rules }) => rules)).toEqual([["key-models"], ["no-policy"]]);
  });
});

describe("obligations", () => {
  it("cap the answer: the smaller of the policy's and the request's limit is sent upstream", async () => {
    const policy = definePolicy({ rules: [permit("short", {}, { maxOutputTokens: 50 })] });
    const { gateway, provider, chat } = await createTestGateway({ policy });
    for (const fields of [{}, { max_tokens: 20 }, { max_completion_tokens: 80 }])
      await gateway.fetch(chat(fields));
    expect(provider.calls.map(({ request }) => request.maxOutputTokens)).toEqual([50, 20, 50]);
  });

  it("keep digests of a transcript instead of its content, and Sessions still continue", async () => {
    const policy = definePolicy({ rules: [permit("digest", {}, { transcript: "digest" })] });
    const { gateway, provider, key, chat } = await createTestGateway({ policy });
    provider.reply("the reply");
    const first = await completionOf(gateway.fetch(chat()));
    const messages = [
      { role: "user", content: "Hello" },
      { role: "assistant", content: "the reply" },
      { role: "user", content: "More" },
    ];
    const second = await completionOf(gateway.fetch(chat({ messages })));
    expect(second.session_id).toBe(first.session_id);
    const { organizationId } = key;
    const transcript = await gateway.sessions.transcript({ organizationId, id: first.session_id });
    expect(transcript.map(({ kind, count, messages }) => [kind, count, messages])).toEqual([
      ["request", 1, null],
      ["reply", 1, null],
      ["request", 1, null],
      ["reply", 1, null],
    ]);
  });

  it("refuse a mistyped member, which would match everything or have no effect", () => {
    // As JavaScript could pass them. In TypeScript, they wouldn't compile.
    const match: object = { gatway: "test" };
    const options: object = { maxTokens: 5 };
    expect(() => definePolicy({ rules: [permit("one", match, options)] })).toThrow(
      "Unknown member: rules[0].match.gatway.\nUnknown member: rules[0].options.maxTokens.",
    );
  });

  it("write a complete sentence for a denial without a reason", async () => {
    const decide = () => ({ effect: "deny" as const, rules: ["never"] });
    const { gateway, chat } = await createTestGateway({
      policy: definePolicy({ version: "1", decide }),
    });
    expect((await failureOf(gateway.fetch(chat()))).message).toBe(
      "The policy denied this request by rule never.",
    );
  });

  it("that are invalid deny the request, like a policy that throws", async () => {
    const senseless: readonly object[] = [
      { maxOutputTokens: 0 },
      { maxOutputTokens: Number.NaN },
      { transcript: "none" },
      { connection: "platform" },
      { fallbacks: "test/a/b" },
      { fallbacks: [1] },
      { maxTokens: 10 },
    ];
    for (const obligations of senseless) {
      const verdict = JSON.stringify({ effect: "permit", rules: ["all"] });
      const decide = () => ({ ...JSON.parse(verdict), obligations });
      const policy = definePolicy({ version: "1", decide });
      const { gateway, provider, chat, key } = await createTestGateway({ policy });
      expect((await gateway.fetch(chat())).status).toBe(403);
      const { data } = await gateway.decisions.list({ organizationId: key.organizationId });
      expect(data).toMatchObject([{ effect: "deny", rules: ["policy-error"] }]);
      expect(provider.calls).toEqual([]);
    }
  });

  it("has the same version whether a rule without conditions says so or not", () => {
    const short = definePolicy({ rules: [{ effect: "permit", id: "all" }] });
    expect(short.version).toBe(permitting.version);
  });

  it("bind however the policy defines them: on a prototype, or as a getter", async () => {
    class Capped {
      get maxOutputTokens() {
        return 7;
      }
    }
    for (const obligations of [new Capped(), Object.create({ maxOutputTokens: 7 })]) {
      const decide = () => ({ effect: "permit" as const, rules: ["all"], obligations });
      const policy = definePolicy({ version: "1", decide });
      const { gateway, provider, chat, key } = await createTestGateway({ policy });
      expect((await gateway.fetch(chat())).status).toBe(200);
      expect(provider.calls).toMatchObject([{ request: { maxOutputTokens: 7 } }]);
      const { data } = await gateway.decisions.list({ organizationId: key.organizationId });
      expect(data[0]?.obligations).toEqual({ maxOutputTokens: 7 });
    }
  });

  it("can require the organization's own connection: 400 connection_required, recorded", async () => {
    const policy = definePolicy({ rules: [permit("own", {}, { connection: "customer" })] });
    const { gateway, provider, key, chat } = await createTestGateway({ policy });
    const answer = await gateway.fetch(chat());
    expect(answer.status).toBe(400);
    expect(await failureOf(answer)).toMatchObject({ code: "connection_required", param: "model" });
    const { data } = await gateway.decisions.list({ organizationId: key.organizationId });
    expect(answer.headers.get("x-service-policy-decision-id")).toBe(data[0]?.id);
    expect(provider.calls).toEqual([]);
  });
});
