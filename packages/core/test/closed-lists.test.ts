import { readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { ProviderError } from "@tollgate/core/provider";
import { createTestGateway, type TestGateway } from "@tollgate/testing";
import { API, type Diagnostic } from "typescript/unstable/async";
import { beforeAll, describe, expect, it } from "vitest";
import { activityColumns, stepColumns } from "../src/administration/export-columns.ts";
import { definePolicy, type Obligations, permit } from "../src/policy.ts";
import type { UsageDetails } from "../src/provider.ts";
import { gatewaySettingsSchema, tryRead } from "../src/schemas.ts";
import {
  type BudgetPeriod,
  budgetPeriods,
  type EndpointName,
  endpointNames,
} from "../src/store.ts";

const root = join(import.meta.dirname, "../../..");

/** A member to add to each closed list, and all places that the compiler must name then. */
const additions = [
  {
    name: "fortnight",
    what: "a budget period",
    list: "packages/core/src/domain/budget.ts",
    find: '"total"] as const',
    replace: '"total", "fortnight"] as const',
    places: ["packages/core/src/budgets/period.ts", "packages/core/test/closed-lists.test.ts"],
  },
  {
    name: "telegrams",
    what: "an endpoint name",
    list: "packages/core/src/domain/step.ts",
    find: '"messages"] as const',
    replace: '"messages", "telegrams"] as const',
    places: [
      "packages/core/src/endpoints/endpoint.ts",
      "packages/core/src/endpoints/routes.ts",
      "packages/core/src/schemas.ts",
      "packages/core/test/closed-lists.test.ts",
      "packages/house/test/reference.test.ts",
    ],
  },
  {
    name: "watermark",
    what: "an obligation",
    list: "packages/core/src/domain/obligations.ts",
    find: "export interface Obligations {",
    replace: "export interface Obligations {\n  readonly watermark?: string;",
    places: [
      "packages/admin/src/records.ts",
      "packages/core/src/check.ts",
      "packages/core/src/pipeline/obligations.ts",
      "packages/core/src/policy/decide.ts",
      "packages/core/src/policy/define-policy.ts",
      "packages/core/src/policy/schema.ts",
      "packages/core/test/closed-lists.test.ts",
    ],
  },
  {
    name: "colour",
    what: "a filter of Steps",
    list: "packages/core/src/contracts/step-query.ts",
    find: "export interface StepQuery {",
    replace: "export interface StepQuery {\n  readonly colour?: readonly string[];",
    places: ["packages/conformance/src/store-contract/queries.ts"],
  },
  {
    name: "decade",
    what: "a period of a rate limit",
    list: "packages/core/src/domain/rate-limit.ts",
    find: '"day"] as const',
    replace: '"day", "decade"] as const',
    places: [
      "packages/core/src/budgets/rate-limits.ts",
      "packages/faults/src/rate-limits/check-history.ts",
    ],
  },
  {
    name: "videoInput",
    what: "a rate of a price",
    list: "packages/core/src/domain/price.ts",
    find: "export interface Rates {",
    replace: "export interface Rates {\n  readonly videoInput?: number;",
    places: [
      "packages/cli/src/focus/columns.ts",
      "packages/core/src/domain/price.test.ts",
      "packages/core/src/domain/price.ts",
      "packages/core/src/evidence/leaves.ts",
      "packages/core/src/routing/read-price.ts",
      "packages/prices/src/read-price.ts",
    ],
  },
  {
    name: "videoInputTokens",
    what: "a detail of usage",
    list: "packages/core/src/domain/usage.ts",
    find: "export interface UsageDetails {",
    replace: "export interface UsageDetails {\n  readonly videoInputTokens?: number;",
    places: [
      "packages/admin/src/records.ts",
      "packages/admin/src/remote-administration.ts",
      "packages/cli/src/commands/correct-step.ts",
      "packages/core/src/administration/schemas.ts",
      "packages/core/src/domain/price.test.ts",
      "packages/core/src/domain/usage-sums.ts",
      "packages/core/src/domain/usage.ts",
      "packages/core/src/evidence/leaves.ts",
      "packages/core/test/closed-lists.test.ts",
      "packages/provider-ai-sdk/src/usage-report.ts",
      "packages/provider-anthropic/src/answer-reader.ts",
      "packages/provider-openai/src/usage-report.ts",
    ],
  },
  {
    name: "video",
    what: "a configured price",
    list: "packages/core/src/contracts/provider.ts",
    find: "export interface ConfiguredRates {",
    replace: "export interface ConfiguredRates {\n  readonly video?: UsdAmount;",
    places: ["packages/core/src/routing/model-schema.ts"],
  },
  {
    name: "creativity",
    what: "a member of a request",
    list: "packages/core/src/domain/completion-request.ts",
    find: "export interface CompletionRequest {",
    replace: "export interface CompletionRequest {\n  readonly creativity?: number;",
    places: [
      "packages/provider-ai-sdk/src/settings.test.ts",
      "packages/provider-anthropic/src/request-body.test.ts",
      "packages/provider-openai/src/request-body.test.ts",
    ],
  },
  {
    name: "novelty",
    what: "a field of both protocols that no request has",
    list: "packages/core/src/wire/common-fields.ts",
    find: "export const samplingFields = {",
    replace: "export const samplingFields = {\n  novelty: optional(number(0, 2)),",
    places: [
      "packages/core/src/wire/chat-completions/parse.ts",
      "packages/core/src/wire/responses/parse.ts",
    ],
  },
] as const;

describe("the compiler, with a member added to each closed list", () => {
  let errors: readonly (readonly [file: string, text: string])[] = [];

  beforeAll(async () => {
    const changed = new Map(
      additions.map(({ list, find, replace }) => {
        const [before, after, ...more] = readFileSync(join(root, list), "utf8").split(find);
        if (after === undefined || more.length > 0) throw new Error(`${list} changed: ${find}`);
        return [join(root, list), `${before}${replace}${after}`];
      }),
    );
    errors = await typeErrors(changed);
  }, 120_000);

  it.each(additions)("names all other places of $what", ({ name, places }) => {
    const naming = errors.filter(([, text]) => text.includes(`'${name}'`));
    expect([...new Set(naming.map(([file]) => file))].sort()).toEqual(places);
  });

  it("finds no other error", () => {
    const others = errors.filter(
      ([, text]) => !additions.some(({ name }) => text.includes(`'${name}'`)),
    );
    expect(others).toEqual([]);
  });
});

/** Checks the types of the whole repository, with some files changed in memory. */
async function typeErrors(changed: ReadonlyMap<string, string>) {
  const api = new API({ cwd: root, fs: { readFile: (path) => changed.get(path) } });
  try {
    const configuration = join(root, "tsconfig.json");
    const snapshot = await api.updateSnapshot({ openProjects: [configuration] });
    const found = await snapshot.getProject(configuration)?.program.getSemanticDiagnostics();
    if (found === undefined) throw new Error("TypeScript did not read tsconfig.json");
    return found.map((one) => [relative(root, one.fileName ?? ""), textOf(one)] as const);
  } finally {
    await api.close();
  }
}

function textOf({ text, messageChain = [] }: Diagnostic): string {
  return [text, ...messageChain.map(textOf)].join("\n");
}

// Each table below has one entry for each member of a closed list.

const hour = 3_600_000;

/** How long each period lasts from its start on 2026-03-01, in hours; null if it never ends. */
const lengths: Readonly<Record<BudgetPeriod, number | null>> = {
  hour: 1,
  day: 24,
  week: 7 * 24,
  month: 31 * 24,
  total: null,
};

/** The path and the body that open a Step on each endpoint. */
const requests: Readonly<Record<EndpointName, readonly [path: string, input: object]>> = {
  chat_completions: ["/v1/chat/completions", { messages: [{ role: "user", content: "Hi" }] }],
  responses: ["/v1/responses", { input: "Hi" }],
  embeddings: ["/v1/embeddings", { input: "Hi" }],
  messages: ["/v1/messages", { max_tokens: 64, messages: [{ role: "user", content: "Hi" }] }],
};

/** An example of each obligation, and what a call shows of it: the second value is that without the obligation. */
const obligations: {
  readonly [Name in keyof Obligations]-?: {
    readonly value: NonNullable<Obligations[Name]>;
    readonly shows: (test: TestGateway) => Promise<unknown>;
    readonly seen: readonly [met: unknown, without: unknown];
  };
} = {
  fallbacks: {
    value: ["test/a/two"],
    async shows({ gateway, provider, chat }) {
      provider.fail(
        new ProviderError("Down.", { reason: "down", delivery: "answered", status: 503 }),
      );
      await gateway.fetch(chat({ model: "test/a/one" }));
      return provider.calls.map(({ model }) => model);
    },
    seen: [["a/one", "a/two"], ["a/one"]],
  },
  maxOutputTokens: {
    value: 9,
    async shows({ gateway, provider, chat }) {
      await gateway.fetch(chat());
      return provider.calls[0]?.request.maxOutputTokens;
    },
    seen: [9, undefined],
  },
  transcript: {
    value: "digest",
    async shows({ gateway, chat, key: { organizationId } }) {
      await gateway.fetch(chat());
      const { data } = await gateway.steps.list({ organizationId });
      return (await gateway.steps.content({ organizationId, id: data[0]?.id ?? "" })).missing.input;
    },
    seen: ["digest", undefined],
  },
  serviceTier: {
    value: "flex",
    async shows({ gateway, provider, chat }) {
      await gateway.fetch(chat({ service_tier: "priority" }));
      return provider.calls[0]?.request.serviceTier;
    },
    seen: ["flex", "priority"],
  },
  connection: {
    value: "customer",
    shows: async ({ gateway, chat }) => (await gateway.fetch(chat())).status,
    seen: [400, 200],
  },
};

/** The details of usage, which every export has as columns. */
const details: Readonly<Record<keyof UsageDetails, true>> = {
  cachedTokens: true,
  reasoningTokens: true,
  cacheWriteTokens: true,
  cacheWrite1hTokens: true,
  audioInputTokens: true,
  audioOutputTokens: true,
  imageInputTokens: true,
  imageOutputTokens: true,
};

describe("a detail of usage", () => {
  it.each(Object.keys(details))("%s is a column of exported Steps and activity", (name) => {
    expect(stepColumns.map(([heading]) => heading)).toContain(name);
    expect(activityColumns.map(([heading]) => heading)).toContain(name);
  });
});

describe("a budget period", () => {
  it.each(budgetPeriods)("%s has a length and can be configured", async (period) => {
    const budgets = [{ id: "b", limit: { requests: 1 }, period }];
    const { gateway, chat, clock } = await createTestGateway({ budgets });
    clock.setWall("2026-03-01T00:00:00Z");
    await gateway.fetch(chat());
    const { data } = await gateway.budgets.status({ id: "b" });
    const [{ periodStart, resetsAt } = { periodStart: "", resetsAt: null }] = data;
    const length =
      resetsAt === null ? null : (Date.parse(resetsAt) - Date.parse(periodStart)) / hour;
    expect(length).toBe(lengths[period]);
  });
});

describe("an endpoint", () => {
  it.each(endpointNames)("%s names its Steps, and filters select them by it", async (endpoint) => {
    const [path, input] = requests[endpoint];
    const { gateway, key, provider } = await createTestGateway();
    provider.reply("Hello");
    const answer = await gateway.fetch(`http://gateway.test${path}`, {
      method: "POST",
      headers: { authorization: `Bearer ${key.secret}`, "content-type": "application/json" },
      body: JSON.stringify({ model: "test/a/one", ...input }),
    });
    expect(answer.status).toBe(200);
    const { organizationId } = key;
    const { data } = await gateway.steps.list({ organizationId, endpoint });
    expect(data.map((step) => step.endpoint)).toEqual([endpoint]);
  });
});

describe("an obligation", () => {
  const facts = {
    ...{ organization: "o", user: "u", key: "k", source: "api", dataClass: "D1_INTERNAL" },
    ...{ gateway: "test", vendor: "a", model: "one", listed: true },
    connection: "platform",
    ...{ tools: false, images: false, structuredOutput: false, serviceTier: "default" },
    ...{ estimatedInputTokens: 1, estimatedOutputTokens: 1, estimatedCostNanoUsd: null },
  } as const;

  it.each(Object.entries(obligations))("%s is read, merged and met", async (name, example) => {
    const { value, shows, seen } = example;
    const rules = [permit("first", {}, { [name]: value }), permit("second")];
    expect(tryRead(gatewaySettingsSchema, { policy: { rules } }).problems).toEqual([]);
    const policy = definePolicy({ rules });
    const verdict = policy.decide(facts, ["D1_INTERNAL"]);
    expect(verdict.obligations).toEqual({ [name]: value });
    const retries = { max: 0 };
    expect(await shows(await createTestGateway({ policy, retries }))).toEqual(seen[0]);
    expect(await shows(await createTestGateway({ retries }))).toEqual(seen[1]);
  });
});
