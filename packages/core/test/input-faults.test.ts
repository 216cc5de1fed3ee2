import { memoryStore } from "@tollgate/store-memory";
import { scriptedProvider } from "@tollgate/testing";
import { describe, expect, it } from "vitest";
import { createGateway, GatewayError, type GatewayOptions } from "../src/index.ts";
import { definePolicy } from "../src/policy.ts";

type Path = readonly (string | number)[];

const options = {
  budgets: [
    {
      id: "acme-month",
      scope: { organization: "acme", model: ["test/a/*"], connection: "platform", each: "user" },
      limit: { usd: "5.00" },
      period: "month",
      mode: "hard",
      warnAt: [0.5, 1],
    },
  ],
  dataClasses: ["D0", "D1"],
  aliases: { fast: "test/a/b" },
  limits: { messages: 10 },
  deadlines: { idle: "60s" },
  retries: { backoff: 10, allowDuplicates: false },
  retention: { responses: "30d" },
  onDisconnect: "abort",
  headerPrefix: "X-App-",
  observers: [],
  maintenance: true,
};

const policy = {
  version: "1",
  rules: [
    {
      effect: "permit",
      id: "usual",
      match: { organization: "acme", gateway: ["test"], upTo: "D1", tools: true },
      options: { maxOutputTokens: 100, transcript: "digest", fallbacks: ["test/a/b"] },
    },
    { effect: "forbid", id: "previews", match: { model: "*/*/*-preview" }, options: {} },
  ],
};

const key = {
  organizationId: "acme",
  userId: "ada",
  label: "laptop",
  models: ["test/a/*"],
  aliases: { fast: "test/a/b" },
  expiresAt: "2999-01-01",
  actor: "admin",
};
const filter = { organizationId: "acme", user: ["ada"], outcome: "failed", from: "2026-01-01" };

const open = (more: object) => {
  const all: GatewayOptions = {
    store: memoryStore(),
    providers: { test: scriptedProvider() },
    ...more,
  };
  return createGateway(all);
};

/** Functions that take any value, and reject invalid ones. */
const surfaces: readonly (readonly [string, object, (written: never) => Promise<unknown>])[] = [
  ["options", options, async (written) => open(written)],
  ["policy", policy, async (written) => definePolicy(written)],
  ["keys.create", key, (written) => open({}).keys.create(written)],
  ["steps.list", filter, async (written) => open({}).steps.list(written)],
  ["budgets.create", options.budgets[0] ?? {}, (written) => open({}).budgets.create(written)],
];

describe("checked input", () => {
  it.each(surfaces)("accepts valid %s", async (_name, valid, take) => {
    await expect(take(valid as never)).resolves.toBeDefined();
  });

  it.each(surfaces)(
    "rejects every fault in %s with its path, before anything happens",
    async (_name, valid, take) => {
      const faults = faultsOf(valid);
      expect(faults.length).toBeGreaterThan(20);
      for (const { written, path } of faults) {
        const error: unknown = await take(written as never).then(
          () => null,
          (thrown: unknown) => thrown,
        );
        expect(error, path).toBeInstanceOf(GatewayError);
        if (!(error instanceof GatewayError)) return;
        expect(["invalid_configuration", "invalid_argument"]).toContain(error.code);
        expect(
          error.problems.some((problem) => isAbout(problem.path, path)),
          `${path}: ${error.message}`,
        ).toBe(true);
      }
    },
  );

  it.each([
    ["a match", { match: { user: undefined } }, "rules[0].match.user"],
    [
      "an obligation",
      { options: { maxOutputTokens: undefined } },
      "rules[0].options.maxOutputTokens",
    ],
  ])(
    "rejects a rule whose %s is undefined, because it would apply to everyone",
    (_, members, path) => {
      const rule = { effect: "permit", id: "admins", match: {}, options: {}, ...members } as const;
      expect(() => definePolicy({ rules: [rule] } as never)).toThrow(`\`${path}\` is undefined`);
    },
  );

  it("rejects keys that touch a prototype", async () => {
    const written = JSON.parse(
      '{"organizationId":"acme","userId":"ada","label":"l","__proto__":{"models":null}}',
    );
    await expect(open({}).keys.create(written)).rejects.toMatchObject({
      code: "invalid_argument",
      param: "__proto__",
    });
    for (const name of ["constructor", "prototype", "toString"])
      await expect(open({}).keys.create({ ...key, [name]: {} })).rejects.toMatchObject({
        param: name,
      });
  });

  it("reports every problem of a policy in one error", () => {
    const rules = [
      { effect: "deny", id: "a" },
      { id: "b", match: { connection: "Platform" } },
      { effect: "permit", id: "c", options: { transcript: "Digest" } },
    ];
    const error = thrownBy(() => definePolicy({ rules } as never));
    expect(error).toMatchObject({ code: "invalid_configuration", param: "rules[0].effect" });
    expect(error).toMatchObject({
      problems: [
        { path: "rules[0].effect" },
        { path: "rules[1].effect" },
        { path: "rules[2].options.transcript" },
      ],
    });
  });

  it("reads a rule without match and options as one that matches everything and has no obligations", () => {
    const { decide } = definePolicy({ rules: [{ effect: "permit", id: "all" }] } as never);
    expect(decide({} as never, ["D0"])).toMatchObject({ effect: "permit", rules: ["all"] });
  });
});

/** For a member of an alternative, the error may name the member or its parent. */
function isAbout(problem: string, path: string): boolean {
  return path.startsWith(problem) || problem.startsWith(path);
}

interface Fault {
  readonly written: object;
  readonly path: string;
}

/** Every member with a wrong type, a wrong value or null, and every object with an unknown member. */
function faultsOf(valid: object): readonly Fault[] {
  return pathsOf(valid).flatMap((path) => {
    const value = at(valid, path);
    const wrong: unknown[] = [
      null,
      Symbol("wrong"),
      { unknown: 1 },
      [[]],
      "\u0000",
      Number.NaN,
      () => {},
    ];
    const faults = wrong
      .filter((one) => !(typeof value === "object" && Array.isArray(one)))
      .filter((one) => !isAccepted(path, one))
      .map((one) => ({ written: set(valid, path, one), path: textOf(path) }));
    if (typeof value !== "object" || value === null || Array.isArray(value)) return faults;
    return [
      ...faults,
      { written: set(valid, [...path, "mistyped"], 1), path: textOf([...path, "mistyped"]) },
    ];
  });
}

/** Values that the schema accepts in place of the example's value. */
function isAccepted(path: Path, value: unknown): boolean {
  const name = path.at(-1);
  if (name === "models" || name === "aliases" || name === "expiresAt") return value === null;
  if (name === "version") return false;
  return name === "observers";
}

function pathsOf(value: unknown, path: Path = []): readonly Path[] {
  if (typeof value !== "object" || value === null) return [path];
  const inner = Object.entries(value).flatMap(([name, member]) =>
    pathsOf(member, [...path, Array.isArray(value) ? Number(name) : name]),
  );
  return path.length === 0 ? inner : [path, ...inner];
}

function at(value: unknown, path: Path): unknown {
  return path.reduce<unknown>((inner, name) => Reflect.get(Object(inner), name), value);
}

function set(value: object, path: Path, to: unknown): object {
  const copy: object = structuredClone(value);
  const last = path.at(-1) ?? "";
  Reflect.set(Object(at(copy, path.slice(0, -1))), last, to);
  return copy;
}

function textOf(path: Path): string {
  return path.reduce<string>(
    (text, name) =>
      typeof name === "number" ? `${text}[${name}]` : text === "" ? name : `${text}.${name}`,
    "",
  );
}

function thrownBy(run: () => unknown): unknown {
  try {
    return run();
  } catch (error) {
    return error;
  }
}
