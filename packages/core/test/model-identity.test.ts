import { createGateway } from "@tollgate/core";
import { definePolicy, forbid, permit } from "@tollgate/core/policy";
import type { ListedModel, ModelOptions } from "@tollgate/core/provider";
import { memoryStore } from "@tollgate/store-memory";
import { createTestGateway, scriptedProvider, type TestGatewayOptions } from "@tollgate/testing";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { failureOf } from "./wire.ts";
import { written } from "./written.ts";

/** A gateway `gw` with these models, and a function that requests one: it returns the upstream name, or the error's code. */
async function openGateway(models: ModelOptions, options: TestGatewayOptions = {}) {
  const upstream = scriptedProvider({
    open: Object.keys(models.models ?? {}).length === 0,
    ...models,
  });
  const test = await createTestGateway({ ...options, providers: { gw: upstream.at("gw") } });
  return {
    ...test,
    upstream,
    async ask(model: string): Promise<string> {
      const asked = upstream.calls.length;
      const answer = await test.gateway.fetch(test.chat({ model }));
      if (answer.status !== 200) return (await failureOf(answer)).code ?? "";
      const { organizationId } = test.key;
      const { data } = await test.gateway.steps.list({ organizationId }, { limit: 1 });
      expect([upstream.calls.length, data[0]?.model]).toEqual([asked + 1, model]);
      return upstream.calls.at(-1)?.upstreamName ?? "";
    },
  };
}

const three = { "openai/gpt-5": {}, "acme/one": { upstreamName: "deployment-1" }, "acme/a/b": {} };

describe("a gateway that lists models", () => {
  it("is closed: any other id gives 404 before the policy, unrecorded", async () => {
    let decided = 0;
    const decide = () => {
      decided++;
      return { effect: "permit", rules: ["all"] } as const;
    };
    const policy = definePolicy({ version: "1", decide });
    const { gateway, key, ask } = await openGateway({ models: three }, { policy });
    const others = ["gw/openai/GPT-5", "gw/Openai/gpt-5", "gw/acme/gpt-5", "gw/acme/deployment-1"];
    for (const other of [...others, "gw/openai/gpt-5/x", "gw/deployment-1/x", "GW/openai/gpt-5"])
      expect(await ask(other), other).toBe("model_not_found");
    expect([decided, await written(gateway)]).toEqual([0, { steps: 0, sessions: 0, decisions: 0 }]);
    expect(key.organizationId).toBe("organization-1");
  });

  it("asks for each model by its table's name, otherwise by its whole id", async () => {
    const { ask } = await openGateway({ models: three });
    expect(await ask("gw/openai/gpt-5")).toBe("openai/gpt-5");
    expect(await ask("gw/acme/one")).toBe("deployment-1");
    expect(await ask("gw/acme/a/b")).toBe("acme/a/b");
  });

  it("that is open passes on unlisted models, but never under a listed model's name", async () => {
    const { ask } = await openGateway({ models: three, open: true, vendor: "openai" });
    expect(await ask("gw/openai/gpt-5")).toBe("gpt-5");
    expect(await ask("gw/openai/gpt-6")).toBe("gpt-6");
    expect(await ask("gw/other/gpt-5")).toBe("other/gpt-5");
    expect(await ask("gw/OpenAI/gpt-5")).toBe("model_not_found");
    for (const taken of ["openai/GPT-5", "openai/deployment-1", "openai/Deployment-1", "acme/ONE"])
      expect(await ask(`gw/${taken}`), taken).toBe("model_not_found");
  });
});

describe("a vendor that isn't part of upstream names", () => {
  it("allows no / in its models; other vendors' models keep their whole name", async () => {
    const { ask } = await openGateway({ vendor: "openai" });
    expect(await ask("gw/openai/gpt-5")).toBe("gpt-5");
    expect(await ask("gw/openai/other/gpt-5")).toBe("model_not_found");
    expect(await ask("gw/other/gpt-5")).toBe("other/gpt-5");
    expect(await ask("gw/OpenAI/gpt-5")).toBe("OpenAI/gpt-5");
  });
});

it("also applies to fallbacks: a model that its gateway doesn't list is rejected at start", async () => {
  const policy = definePolicy({
    rules: [permit("all", {}, { fallbacks: ["gw/acme/one", "gw/acme/none"] })],
  });
  await expect(openGateway({ models: three }, { policy })).rejects.toThrow(
    "`policy` falls back to gw/acme/none, which no gateway has.",
  );
});

it("shows a policy whether a model is listed", async () => {
  const policy = definePolicy({
    rules: [
      permit("listed", { listed: true }),
      permit("mini", { listed: false, model: "*/*/*-mini" }),
    ],
  });
  const { ask } = await openGateway({ models: three, open: true }, { policy });
  expect(await ask("gw/acme/one")).toBe("deployment-1");
  expect(await ask("gw/acme/two")).toBe("policy_denied");
  expect(await ask("gw/acme/two-mini")).toBe("acme/two-mini");
});

it("lists Steps of a model whatever the case of its id", async () => {
  const { ask, gateway, key } = await openGateway({});
  for (const model of ["gw/v/m", "gw/V/M", "gw/w/m"]) await ask(model);
  const { organizationId } = key;
  for (const model of ["gw/v/m", "GW/V/M", ["gw/v/M", "no/no/no"], "gw/V/*"]) {
    const { data } = await gateway.steps.list({ organizationId, model });
    expect(data.map((step) => step.model)).toEqual(["gw/V/M", "gw/v/m"]);
  }
});

describe("ambiguous model names are rejected at start", () => {
  const start = (models: ModelOptions, gateway = "gw") =>
    createGateway({
      store: memoryStore(),
      providers: {
        [gateway]: scriptedProvider(models).at(gateway),
        up: scriptedProvider().at("up"),
      },
    });

  it.each<readonly [string, ModelOptions, string]>([
    ["ids", { models: { "a/b": {}, "A/b": {} } }, 'models: "a/b" and "A/b" differ by case only.'],
    [
      "two models with one upstream name",
      { models: { "a/b": { upstreamName: "x" }, "a/c": { upstreamName: "X" } } },
      'models: "a/b" and "a/c" are both "X" upstream.',
    ],
    [
      "an upstream name that is another model's own name",
      { models: { "a/b": { upstreamName: "c/d" }, "c/d": {} } },
      'models: "a/b" and "c/d" are both "c/d" upstream.',
    ],
    [
      "an upstream name that is another model's name without its vendor",
      { vendor: "v", models: { "a/b": { upstreamName: "m" }, "v/m": {} } },
      'models: "a/b" and "v/m" are both "m" upstream.',
    ],
    [
      "a slash that is left after the vendor",
      { vendor: "v", models: { "v/a/b": {} } },
      'models: "v/a/b" contains another / after the vendor, which the option vendor removes.',
    ],
    ["an empty name", { models: { "a/b": { upstreamName: "" } } }, "must be 1 to 2048 characters"],
    ["a name with a space", { models: { "a/b": { upstreamName: "a b" } } }, "must be 1 to 2048"],
    ["a vendor of two segments", { vendor: "a/b" }, "vendor must be null or a vendor"],
    ["no model to serve", { open: false }, "it could serve nothing"],
  ])("%s", (_, models, problem) => {
    expect(() => start(models)).toThrow(`Gateway gw: `);
    expect(() => start(models)).toThrow(problem);
  });

  it("gateways that differ only in case", () => {
    expect(() => start({}, "UP")).toThrow("Gateway up: its name differs from UP only in case.");
  });

  it("prices whose ids differ only in case", () => {
    const providers = { gw: scriptedProvider() };
    const prices = { "gw/a/b": { input: 1, output: 1 }, "gw/a/B": { input: 2, output: 2 } };
    expect(() => createGateway({ store: memoryStore(), providers, prices })).toThrow(
      "Models gw/a/b and gw/a/B differ by case only.",
    );
  });
});

const names = ["gpt-5", "Gpt-5", "openai/gpt-5", "acme/gpt-5", "a/b", "gpt-5-é", "deployment"];
const vendors = ["openai", "acme", "OpenAI", "models", "gpt-5"];
const ids = vendors.flatMap((vendor) => names.map((name) => `${vendor}/${name}`));
const fold = (text: string) => text.replace(/[A-Z]/g, (letter) => letter.toLowerCase());

const listedModel: fc.Arbitrary<ListedModel> = fc
  .option(fc.constantFrom(...names, ...ids), { nil: null })
  .map((upstreamName) => (upstreamName === null ? {} : { upstreamName }));
const naming: fc.Arbitrary<ModelOptions> = fc.record(
  {
    models: fc.dictionary(fc.constantFrom(...ids), listedModel, { maxKeys: 3 }),
    open: fc.boolean(),
    vendor: fc.constantFrom("openai", "acme", "models"),
  },
  { requiredKeys: ["models", "open"] },
);

const asItIs = (text: string): string => text;
/** Ways to write a model, its upstream name, or a part of either. */
const spellings: readonly ((text: string) => string)[] = [
  asItIs,
  (text) => text.toUpperCase(),
  (text) => text.toLowerCase(),
  (text) => text.replace(/^./, (letter) => letter.toUpperCase()),
  (text) => text.replace("/", "//"),
  (text) => text.replace("/", "/./"),
  (text) => text.replace("/", "/x/../"),
  (text) => `./${text}`,
  (text) => text.replaceAll("/", "%2F"),
  (text) => text.replaceAll("-", "%2D"),
  (text) => text.replaceAll("-", "\u2010"),
  (text) => text.replaceAll("e", "\u0435"),
  (text) => text.normalize("NFD"),
  (text) => text.normalize("NFC"),
  (text) => text.normalize("NFKD"),
  (text) => `${text} `,
  (text) => ` ${text}`,
  (text) => `${text}/`,
  (text) => `${text}\u0000`,
  (text) => `${text}\u200B`,
  (text) => text.replace("/", "\\"),
  (text) => `${text}?x`,
  (text) => `${text}#x`,
  (text) => text.slice(text.indexOf("/") + 1),
];
/** The spelling that always reaches the model, because random ones may miss it. */
const plainly = ["", asItIs, asItIs] as const;

describe("every spelling of a model", () => {
  it("meets the same forbid, budget and price, or isn't a model (H2)", async () => {
    let met = 0;
    const property = fc.asyncProperty(
      naming,
      fc.nat(),
      fc.array(
        fc.tuple(
          fc.constantFrom(...vendors, ""),
          fc.constantFrom(...spellings),
          fc.constantFrom(...spellings),
        ),
        { minLength: 20, maxLength: 40 },
      ),
      async (models, pick, ways) => {
        const listed = Object.keys(models.models ?? {});
        const choice = models.open && (listed.length === 0 || pick % 3 === 0) ? ids : listed;
        const model = `gw/${choice[pick % choice.length]}`;
        const governed = (rules: TestGatewayOptions) =>
          openGateway(models, {
            prices: { [model]: { input: 1, output: 1 } },
            budgets: [
              { id: "model", scope: { model }, limit: { requests: 1_000 }, period: "total" },
            ],
            ...rules,
          });
        const free = await governed({}).catch(() => null);
        fc.pre(free !== null);
        const policy = definePolicy({ rules: [permit("all"), forbid("model", { model })] });
        const barred = await governed({ policy });
        const name = await free.ask(model);
        fc.pre(name !== "model_not_found");
        const counted = async () =>
          (await free.gateway.budgets.status({ id: "model" })).data[0]?.settled ?? 0;
        for (const [vendor, first, second] of [plainly, ...ways]) {
          const written = vendor === "" ? model.slice(3) : `${vendor}/${name}`;
          const spelling = `gw/${second(first(written))}`;
          const before = await counted();
          const reached = await free.ask(spelling);
          if (reached === "model_not_found") {
            expect(await barred.ask(spelling)).toBe("model_not_found");
            continue;
          }
          if (fold(reached) !== fold(name)) continue;
          met++;
          const { data } = await free.gateway.steps.list(
            { organizationId: free.key.organizationId },
            { limit: 1 },
          );
          expect([
            await barred.ask(spelling),
            await counted(),
            data[0]?.attempts.at(-1)?.priceSource,
          ]).toEqual(["policy_denied", before + 1, "custom"]);
        }
        expect(barred.upstream.calls).toEqual([]);
      },
    );
    await fc.assert(property, { numRuns: 50 });
    expect(met).toBeGreaterThan(10);
  }, 60_000);
});
