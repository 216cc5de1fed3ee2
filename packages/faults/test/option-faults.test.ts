import { createGateway, GatewayError, type GatewayOptions } from "@tollgate/core";
import { aiSdk } from "@tollgate/provider-ai-sdk";
import { openaiCompatible } from "@tollgate/provider-openai";
import { memoryStore } from "@tollgate/store-memory";
import { postgresStore } from "@tollgate/store-postgres";
import { sqliteStore } from "@tollgate/store-sqlite";
import fc from "fast-check";
import { describe, expect, it } from "vitest";

const models = {
  "acme/mini": {
    input: "1",
    output: "2",
    cacheWrite: { "5m": 1 },
    tiers: { flex: { input: 1, output: 1 } },
    maxOutputTokens: 100,
    reasons: true,
    upstreamName: "mini",
  },
};
const billing = { reportedCost: "trust", reportedCostFactor: 2, autoTiers: ["flex"] };

const openai = {
  baseURL: "https://api.example/v1",
  apiKey: "sk-0123456789abcdef",
  models,
  open: true,
  vendor: "acme",
  connection: "platform",
  listModels: false,
  headers: { "x-team": "a" },
  maxTokensField: "max_tokens",
  developerRole: "system",
  forwardStore: false,
  billing,
};
const ai = { apiKey: "sk-0123456789abcdef", models, open: true, hosts: ["api.example"], billing };

const withProvider = (make: (options: object) => GatewayOptions["providers"][string]) => {
  return (options: object) =>
    createGateway({ store: memoryStore(), providers: { p: make(options) } });
};
const called = (make: unknown, ...given: readonly unknown[]) =>
  typeof make === "function" ? Reflect.apply(make, undefined, given) : null;

/** Functions with options, an example of all their options, and the prefix of a problem's path. */
const surfaces: readonly (readonly [string, object, (options: object) => unknown])[] = [
  ["openaiCompatible", openai, withProvider((options) => called(openaiCompatible, options))],
  ["aiSdk", ai, withProvider((options) => called(aiSdk, () => ({}), options))],
  ["sqliteStore", { filename: "a.db" }, (options) => called(sqliteStore, options)],
  [
    "postgresStore",
    { schema: "acme", migrate: "check", namedStatements: true },
    (options) => called(postgresStore, { url: "postgres://db.example/app" }, options),
  ],
  ["memoryStore", {}, (options) => called(memoryStore, options)],
];

type Path = readonly string[];

/** Every member of an example by its path, the example itself first. */
function pathsOf(value: unknown, path: Path = []): readonly Path[] {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return [path];
  return [path, ...Object.entries(value).flatMap(([name, one]) => pathsOf(one, [...path, name]))];
}

function withMember(value: object, [name = "", ...rest]: Path, to: unknown): object {
  if (rest.length === 0) return { ...value, [name]: to };
  return { ...value, [name]: withMember(Object(Reflect.get(value, name)), rest, to) };
}

function errorOf(run: () => unknown): unknown {
  try {
    run();
    return null;
  } catch (thrown) {
    return thrown;
  }
}

const wrong = fc.constantFrom<unknown>({ unknown: 1 }, [[]], Number.NaN, -1.5, Symbol("s"));

describe("faults in the options of providers and stores", () => {
  it.each(surfaces)("%s accepts valid options", (_, valid, make) => {
    expect(errorOf(() => make(valid))).toBeNull();
  });

  it.each(surfaces)("%s names each fault with its path, in one error", (_, valid, make) => {
    const paths = pathsOf(valid).filter((path) => path.length > 0 && path[0] !== "headers");
    const values = paths.filter((path) => typeof at(valid, path) !== "object");
    const objects = [[], ...paths].filter((path) => isRecord(at(valid, path)) && !isMap(path));
    const fault = fc.oneof(
      fc
        .record({
          path: fc.constantFrom(...objects),
          name: fc.constantFrom("mistyped", "toString"),
        })
        .map(({ path, name }) => ({ path: [...path, name], to: 1 as unknown })),
      ...(values.length === 0 ? [] : [fc.record({ path: fc.constantFrom(...values), to: wrong })]),
    );
    const distinct = fc.uniqueArray(fault, {
      minLength: 1,
      maxLength: 3,
      selector: ({ path }) => path[0] ?? "",
    });
    fc.assert(
      fc.property(distinct, (faults) => {
        const options = faults.reduce<object>(
          (all, { path, to }) => withMember(all, path, to),
          valid,
        );
        const error = errorOf(() => make(options));
        expect(error).toBeInstanceOf(GatewayError);
        if (!(error instanceof GatewayError)) return;
        expect(error.code).toBe("invalid_configuration");
        for (const { path } of faults) expect(error.message).toContain(path.at(-1));
        expect(error.message).not.toContain("sk-0123456789abcdef");
      }),
      { numRuns: 100 },
    );
  });
});

function at(value: unknown, path: Path): unknown {
  return path.reduce<unknown>((inner, name) => Reflect.get(Object(inner), name), value);
}

function isRecord(value: unknown): boolean {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Paths whose member names are chosen by the configuration. */
function isMap(path: Path): boolean {
  return ["models", "tiers", "headers"].includes(path.at(-1) ?? "");
}
