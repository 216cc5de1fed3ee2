// biome-ignore-all lint/suspicious/noTemplateCurlyInString: these files name variables this way
import { generateKeyPairSync } from "node:crypto";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Problem } from "@tollgate/core/schemas";
import { Ajv2020 } from "ajv/dist/2020.js";
import { afterAll, describe, expect, it } from "vitest";
import { stringify } from "yaml";
import { ConfigurationError } from "../src/configuration/configuration-error.ts";
import { configurationJsonSchema } from "../src/configuration/data-schema.ts";
import { fillIn } from "../src/configuration/fill-in.ts";
import { loadConfiguration } from "../src/configuration/load-configuration.ts";
import { messageOf } from "../src/failure.ts";
import { findConfiguration } from "../src/open-gateway.ts";

const folder = mkdtempSync(join(tmpdir(), "tollgate-configuration-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const apiKey = "sk-proj-0123456789abcdefghij";
const keyEncryptionKey = Buffer.alloc(32, 7).toString("base64");
const signingKey = generateKeyPairSync("ed25519")
  .privateKey.export({ type: "pkcs8", format: "pem" })
  .toString();
const password = "correct-horse-battery";

/** A configuration with every section. */
const valid = () => ({
  $schema: "./tollgate.schema.json",
  store: {
    type: "postgres",
    url: `postgres://tollgate:${password}@localhost:1/app`,
    schema: "gateway",
    migrate: "check",
    namedStatements: true,
  },
  providers: {
    openai: {
      type: "openai",
      apiKey,
      models: {
        "openai/gpt-5": {
          input: "1.25",
          output: 10,
          tiers: { priority: { input: 2, output: 20 } },
          maxOutputTokens: 4_096,
          reasons: true,
        },
      },
    },
    own: {
      type: "openai-compatible",
      baseURL: "https://models.example.com/v1",
      connection: "customer",
      headers: { "x-team": "platform" },
      maxTokensField: "max_tokens",
      developerRole: "system",
      billing: { reportedCost: "trust", reportedCostFactor: 3 },
    },
    sim: { type: "sim", pace: 1 },
  },
  policy: {
    version: "2026-01",
    rules: [
      {
        effect: "permit",
        id: "internal",
        match: { gateway: ["openai", "sim"], upTo: "D1_INTERNAL", tools: false },
        options: { maxOutputTokens: 100, transcript: "digest", fallbacks: ["sim/tollgate/echo"] },
      },
      {
        effect: "forbid",
        id: "no-previews",
        match: { model: "*/*/*-preview", connection: "platform" },
        options: { reason: "Previews are off." },
      },
    ],
  },
  budgets: [
    {
      id: "team",
      scope: { organization: "acme", gateway: "openai", each: "user" },
      limit: { usd: 5 },
      period: "month",
      mode: "hard",
      warnAt: [0.5],
    },
  ],
  dataClasses: ["D0_PUBLIC", "D1_INTERNAL"],
  prices: { "own/acme/large": { input: 1, output: 2 } },
  secrets: { current: "k1", keys: { k1: keyEncryptionKey } },
  evidence: { name: "tollgate.example", privateKey: signingKey, alarmAfter: "30s" },
  limits: { bodyBytes: 1_000_000 },
  deadlines: { total: "5m" },
  retries: { max: 1, allowDuplicates: false },
  retention: { responses: "7d" },
  onDisconnect: "abort",
  toolOutputs: "parts",
  sessions: { leadingSystem: "apart" },
  headerPrefix: "X-Acme-",
  maintenance: false,
  serve: { port: 0, host: "127.0.0.1", closeWithin: 5, drainDelay: 1, limits: { connections: 10 } },
});

function written(name: string, text: string): string {
  const file = join(folder, name);
  writeFileSync(file, text);
  return file;
}

const environment = { OPENAI_API_KEY: apiKey, EMPTY: "", REGION: "eu" };

async function load(file: string, variables: Readonly<Record<string, string>> = environment) {
  const loaded = await loadConfiguration(file, variables);
  await loaded.gateway.close();
  return loaded;
}

/** Returns the error for a file. */
async function refusal(file: string, variables?: Readonly<Record<string, string>>) {
  const thrown = await load(file, variables).catch((error: unknown) => error);
  if (!(thrown instanceof ConfigurationError))
    throw new Error("it was not refused", { cause: thrown });
  return thrown;
}

const yaml = (value: unknown) => written("tollgate.config.yaml", stringify(value));
const yamlText = (text: string) => written("tollgate.config.yaml", text);
const small = "store: { type: memory }\nproviders: { sim: { type: sim } }\n";

describe("a configuration file", () => {
  it.each(["json", "yaml", "yml", "JSON"])(
    "creates a gateway from every section, as .%s",
    async (ending) => {
      const text = ending.toLowerCase() === "json" ? JSON.stringify(valid()) : stringify(valid());
      const { options, serve } = await load(written(`whole.${ending}`, text));
      expect(serve).toEqual(valid().serve);
      expect(Object.keys(options?.providers ?? {})).toEqual(["openai", "own", "sim"]);
      expect(options?.policy?.version).toBe("2026-01");
      expect(options).not.toHaveProperty("serve");
      expect(options).not.toHaveProperty("$schema");
    },
  );

  it("creates virtual gateways, and checks them", async () => {
    const providers = {
      sim: { type: "sim" },
      best: { type: "virtual", models: { fast: ["sim/tollgate/echo"] } },
    };
    const { options } = await load(yaml({ ...parsedSmall, providers }));
    expect(options?.providers["best"]?.virtual).toEqual({
      "any/fast": { by: "order", targets: [{ model: "sim/tollgate/echo", weight: 1 }] },
    });
    const wrong = { ...providers, best: { type: "virtual", models: { fast: "sim" } } };
    const { message } = await refusal(yaml({ ...parsedSmall, providers: wrong }));
    expect(message).toContain("`providers.best.models.fast` must be a list of 1 to 16 model ids");
  });

  it("uses the price catalog unless it sets its own prices", async () => {
    const { options } = await load(yamlText(small));
    expect(options?.prices).toHaveProperty("priceOf");
    const own = await load(yamlText(`${small}prices: {}`));
    expect(own.options?.prices).toEqual({});
  });

  it.each([
    "anthropic",
    "openrouter",
    "groq",
    "mistral",
    "deepseek",
    "xai",
    "together",
    "fireworks",
    "cerebras",
    "gemini",
  ])("needs only a key for %s", async (type) => {
    const { options } = await load(yaml({ ...parsedSmall, providers: { a: { type, apiKey } } }));
    expect(options?.providers["a"]).toMatchObject({ problems: [], connection: "platform" });
  });

  it("needs a host for azure and nothing for ollama, and lets members override defaults", async () => {
    const providers = {
      azure: { type: "azure", baseURL: "https://acme.openai.azure.com/openai/v1", apiKey },
      ollama: { type: "ollama" },
      own: { type: "openai", connection: "customer", vendor: "acme" },
    };
    const secrets = valid().secrets;
    const { options } = await load(yaml({ ...parsedSmall, providers, secrets }));
    expect(options?.providers["own"]).toMatchObject({ connection: "customer", vendor: "acme" });
    expect(options?.providers["ollama"]).toHaveProperty("listModels");
    const { problems } = await refusal(
      yaml({ ...parsedSmall, providers: { a: { type: "azure" } } }),
    );
    expect(problems.map(({ path }) => path)).toEqual(["providers.a.baseURL", "providers.a.apiKey"]);
  });
});

const parsedSmall = { store: { type: "memory" }, providers: { sim: { type: "sim" } } };

describe("variables of a configuration file", () => {
  const withPrefix = (text: string) => yaml({ ...parsedSmall, headerPrefix: text });
  const prefix = async (text: string) => (await load(withPrefix(text))).options?.headerPrefix;

  it("are replaced, with their defaults, and can be escaped", async () => {
    expect(await prefix("X-${REGION}-")).toBe("X-eu-");
    expect(await prefix("${MISSING:-X-Default-}")).toBe("X-Default-");
    expect(await prefix("${EMPTY:-X-Default-}")).toBe("X-Default-");
    expect(await prefix("${REGION:-us}${REGION}")).toBe("eueu");
    const escaped = { a: ["$${REGION}", "$$${REGION}", "a$b $$ $", "${LITERAL}"] };
    expect(fillIn(escaped, { REGION: "eu", LITERAL: "${REGION} $${REGION}" }).value).toEqual({
      a: ["${REGION}", "$${REGION}", "a$b $$ $", "${REGION} $${REGION}"],
    });
  });

  it.each(["${MISSING}", "${EMPTY}", "a ${REGION} b ${MISSING}"])(
    "are refused if undefined or empty: %s",
    async (text) => {
      const { problems } = await refusal(withPrefix(text));
      expect(problems).toHaveLength(1);
      expect(problems[0]?.path).toBe("headerPrefix");
      expect(problems[0]?.message).toMatch(
        /^`headerPrefix` uses (MISSING|EMPTY), which is undefined or empty: set this variable\.$/,
      );
    },
  );

  it.each([
    "${",
    "${}",
    "${1A}",
    "${A-b}",
    "${A",
    "${A B}",
    "${constructor.name}",
    "${A:-${B}}",
    "${A:-$${B}}",
  ])("are refused if mistyped: %s", async (text) => {
    const { problems } = await refusal(withPrefix(text));
    expect(problems).toEqual([
      {
        path: "headerPrefix",
        message:
          "`headerPrefix` has a ${ that doesn't begin a variable: write ${NAME}, or $${ for a literal ${.",
      },
    ]);
  });

  it("never read an object's own methods, change the syntax or become member names", async () => {
    expect((await refusal(withPrefix("${constructor}"))).message).toContain("uses constructor");
    const injected = { EVIL: 'x"\npolicy: { rules: [] }\n' };
    expect((await refusal(withPrefix("${EVIL}"), injected)).problems).toMatchObject([
      { path: "headerPrefix" },
    ]);
    const named = yaml({ ...parsedSmall, providers: { "${REGION}": { type: "sim" } } });
    expect((await refusal(named)).message).toContain("its name must be 1 to 64 letters");
  });
});

describe("credentials of a configuration file", () => {
  const shown = async (value: unknown, variables = environment) => {
    const { message, problems } = await refusal(yaml(value), variables);
    const all = messageOf(new Error(message)) + JSON.stringify(problems);
    expect(all).not.toContain(apiKey);
    expect(all).not.toContain(password);
    return problems;
  };
  const rule = (match: object) => ({ rules: [{ effect: "permit", id: "a", match }] });

  it.each<[string, object]>([
    ["providers.[hidden]", { providers: { [apiKey]: { type: "sim" } } }],
    ["budgets[0].id", { budgets: [{ id: apiKey, limit: { usd: 1 }, period: "day" }] }],
    ["policy.rules[0].match.gateway", { policy: rule({ gateway: apiKey }) }],
    ["policy.rules[0].match.user", { policy: rule({ user: "AKIAABCDEFGHIJKLMNOP" }) }],
    ["headerPrefix", { headerPrefix: `X-${apiKey}` }],
    ["store.filename", { store: { type: "sqlite", filename: `postgres://u:${password}@h/db` } }],
    [
      "providers.a.baseURL",
      { providers: { a: { type: "ollama", baseURL: `https://u:${password}@example.com/v1` } } },
    ],
  ])("are refused, and not shown, at %s", async (path, change) => {
    const problems = await shown({ ...parsedSmall, ...change });
    expect(
      problems.map((problem) => problem.path.replace("${OPENAI_API_KEY}", "[hidden]")),
    ).toContain(path);
  });

  it("are refused if the same file uses them elsewhere, and every error hides variables", async () => {
    const plain = "a-credential-of-no-known-form";
    const providers = { a: { type: "groq", apiKey: "${KEY}" }, [plain]: { type: "sim" } };
    const { message } = await refusal(yaml({ ...parsedSmall, providers }), { KEY: plain });
    expect(message).toContain("contains a credential where records and logs show it");
    expect(message).not.toContain(plain);
    const unknown = yaml({ ...parsedSmall, policy: rule({ gateway: "${KEY}" }) });
    const { message: named } = await refusal(unknown, { KEY: plain });
    expect(named).toContain("names an unknown gateway, ${KEY}");
    const { message: short } = await refusal(unknown, { KEY: "hunter2" });
    expect(short).toContain("names an unknown gateway, ${KEY}");
  });

  it("are not shown even in part, in long names or mistyped variables", async () => {
    const long = `sk-proj-${"a1B2c3D4".repeat(20)}`;
    const secret = `${"9f".repeat(40)}`;
    const providers = { a: { type: "groq", apiKey: secret }, [long]: 1, [secret]: 1 };
    const headerPrefix = "${sk_live_0123456789abcdefghij}";
    const { message, problems } = await refusal(yaml({ ...parsedSmall, providers, headerPrefix }));
    expect(problems.length).toBeGreaterThan(3);
    for (const part of ["a1B2c3D4", "9f9f9f", "0123456789"])
      expect(message + JSON.stringify(problems)).not.toContain(part);
  });

  it("may be the password of a PostgreSQL address, which no error shows", async () => {
    const store = { ...valid().store, migrate: "Check" };
    const problems = await shown({ ...valid(), store });
    expect(problems).toMatchObject([{ path: "store.migrate" }]);
  });
});

describe("an invalid configuration file", () => {
  it.each<[string, string, string]>([
    ["YAML that ends early", "a: {", "isn't valid YAML (line 1"],
    ["a member twice", `${small}limits: {}\nlimits: {}\n`, "same member twice (line 4 column 1)"],
    [
      "an unknown tag",
      "store: !!binary aGk=\n",
      "isn't valid YAML (line 1 column 8: tag resolve failed)",
    ],
    ["two documents", `${small}---\n${small}`, "isn't valid YAML"],
    [
      "an alias inside its anchor",
      "store: &a\n  type: *a\n",
      "An alias is inside its own anchor (line 2 column 9)",
    ],
    ["an alias further in", "store: &a [{ x: [*a] }]\n", "An alias is inside its own anchor"],
    ["an unknown alias", "store: *nothing\n", "An alias has no anchor before it (line 1 column 8)"],
    ["an alias as a name", "a: &a x\n*a : 1\n", "line 2 column 1: non string key"],
    ["a list", "- 1\n", "The file must be an object."],
    ["nothing", "", "`store` is required"],
    ["text", "hello", "The file must be an object."],
    ["a merge key", `x: &x { a: 1 }\nlimits: { <<: *x }\n`, "Unknown option: x."],
    ["deep nesting", "[".repeat(50_000), "YAML"],
    ["levels", `a: ${"[".repeat(100)}${"]".repeat(100)}`, "more than 32 levels"],
  ])("is refused: %s", async (_, text, words) => {
    const file = yamlText(text);
    const { message } = await refusal(file);
    expect(message.startsWith(`${file}: `)).toBe(true);
    expect(message).toContain(words === "YAML" ? "tollgate.config.yaml" : words);
  });

  it.each(["lol", "1"])("is refused quickly if aliases of %s expand to too much", async (one) => {
    const lines = Array.from(
      { length: 9 },
      (_, at) => `a${at + 1}: &a${at + 1} [${Array(9).fill(`*a${at}`).join(", ")}]`,
    );
    const from = performance.now();
    const { message } = await refusal(yamlText(`a0: &a0 ${one}\n${lines.join("\n")}\n`));
    expect(message).toContain("100,000 values");
    expect(performance.now() - from).toBeLessThan(5_000);
  });

  it.each([
    ["of one anchor", `a: &a 1\nb: [${"*a, ".repeat(20_000)}*a]\n`],
    [
      "of each other",
      Array.from({ length: 4_000 }, (_, at) => `k${at}: &a${at} [${at ? `*a${at - 1}` : 1}]`).join(
        "\n",
      ),
    ],
  ])("is refused quickly if it has very many aliases %s", async (_, text) => {
    const from = performance.now();
    const { message } = await refusal(yamlText(text));
    expect(message).toContain("more than 1,000 aliases (line");
    expect(performance.now() - from).toBeLessThan(5_000);
  });

  it("is refused if its variables expand to too much", async () => {
    const text = `${small}headerPrefix: "${"${LONG}".repeat(20_000)}"\n`;
    const { message } = await refusal(yamlText(text), { LONG: "x".repeat(100_000) });
    expect(message).toContain("4 MiB of text");
  });

  it("may use aliases that expand to little", async () => {
    const text = `store: { type: memory }
providers:
  a: { type: ollama, models: { acme/one: &price { input: 1, output: 2 }, acme/two: *price } }
`;
    const { options } = await load(yamlText(text));
    expect(Object.keys(options?.providers["a"]?.models ?? {})).toEqual(["acme/one", "acme/two"]);
  });

  it.each<[string, string, string]>([
    ["an extra comma", '{"store": {},}', "isn't valid JSON"],
    [
      "a member twice",
      '{\n"policy": {"rules": []},\n"limits": {},\n"pol\\u0069cy": {}}',
      "same member twice (line 4)",
    ],
    ["a member twice inside", '{"a": [{"b": 1}, {"b": 1, "b": 2}]}', "same member twice (line 1)"],
    ["a credential where a string should begin", `{"apiKey": ${apiKey}}`, "isn't valid JSON"],
  ])("is refused as JSON: %s", async (_, text, words) => {
    const { message } = await refusal(written("tollgate.config.json", text));
    expect(message).toContain(words);
    expect(message).not.toContain(apiKey);
  });

  it("may repeat a key in different objects and contain text that looks like syntax", async () => {
    const value = {
      ...parsedSmall,
      budgets: [
        { id: '{":"}', limit: { requests: 1 }, period: "day" },
        { id: "b", limit: { requests: 1 }, period: "day" },
      ],
    };
    await load(written("tollgate.config.json", JSON.stringify(value, null, 2)));
  });

  it("is not quoted in the error if it is YAML", async () => {
    for (const text of [
      `apiKey: ${apiKey}: x`,
      `apiKey: "${apiKey}`,
      `? ${apiKey}\n@ ${apiKey}`,
      `*${apiKey}`,
    ])
      expect((await refusal(yamlText(text))).message).not.toContain(apiKey);
  });

  it("is refused if it can't be read, is too large, isn't text or is something else", async () => {
    mkdirSync(join(folder, "folder.yaml"));
    expect((await refusal(join(folder, "folder.yaml"))).message).toContain(
      "can't be read (EISDIR)",
    );
    expect((await refusal(join(folder, "none.yaml"))).message).toContain("can't be read (ENOENT)");
    const large = yamlText(`${small}# ${"x".repeat(1_048_576)}`);
    expect((await refusal(large)).message).toContain("larger than 1 MiB");
    writeFileSync(large, Buffer.from([0x61, 0x3a, 0x20, 0xff]));
    expect((await refusal(large)).message).toContain("isn't UTF-8");
    expect((await refusal(written("a.toml", ""))).message).toContain("must end in .ts");
  });
});

describe("finding a configuration file", () => {
  const inFolder = (...names: readonly string[]) => {
    const at = mkdtempSync(join(folder, "find-"));
    for (const name of names) writeFileSync(join(at, name), small);
    return { at, find: () => findConfiguration(at, undefined) };
  };

  it.each(["ts", "mts", "js", "mjs", "json", "yaml", "yml"])(
    "finds tollgate.config.%s",
    (ending) => {
      const { at, find } = inFolder(`tollgate.config.${ending}`, "tollgate.db", "package.json");
      expect(find()).toBe(join(at, `tollgate.config.${ending}`));
    },
  );

  it("takes the first module, and refuses a second file if one of them is JSON or YAML", () => {
    const { at, find } = inFolder("tollgate.config.js", "tollgate.config.ts");
    expect(find()).toBe(join(at, "tollgate.config.ts"));
    expect(inFolder("tollgate.config.ts", "tollgate.config.yaml").find).toThrow(
      "has tollgate.config.ts and tollgate.config.yaml: choose one with --config",
    );
  });

  it.each([
    "tollgate.yaml",
    "tollgate.conf.yml",
    "tollgate-config.json",
    "tollgate.config.toml",
    ".tollgate.json",
    "Tollgate.Config.yaml",
    "tolgate.config.yaml",
    "tollgate_config.yaml",
    "tollgate.configuration.yaml",
    "tollgate.config.yaml.txt",
    "tollgate.config",
  ])("never ignores %s because of its name", (name) => {
    expect(inFolder(name).find).toThrow(`has ${name}, which Tollgate doesn't read`);
  });

  it("names a broken link, named or in the folder", () => {
    const { at, find } = inFolder();
    const link = join(at, "tollgate.config.json");
    symlinkSync(join(at, "missing.json"), link);
    const message = `configuration file not found: ${link} is a broken link`;
    expect(find).toThrow(message);
    expect(() => findConfiguration(at, "tollgate.config.json")).toThrow(message);
  });

  it("finds nothing in a folder of other files", () => {
    const { find } = inFolder(
      "tollgate.db",
      "tollgate.config.schema.json",
      "tollgate.config.d.ts",
      "tollgate.config.example.yaml",
      "toll.ts",
    );
    expect(find()).toBeNull();
  });
});

type Keys = readonly (string | number)[];

/** Every place in the configuration that has a value. */
function placesOf(value: unknown, keys: Keys = []): readonly Keys[] {
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([key, member]) => {
    const at = [...keys, Array.isArray(value) ? Number(key) : key];
    return [at, ...placesOf(member, at)];
  });
}

const valueAt = (value: unknown, keys: Keys): unknown =>
  keys.reduce<unknown>(
    (at, key) => (typeof at === "object" && at !== null ? Reflect.get(at, key) : undefined),
    value,
  );

const pathOf = (keys: Keys): string =>
  keys.reduce<string>((path, key) => {
    if (typeof key === "number") return `${path}[${key}]`;
    if (!/^[\w$-]+$/.test(key)) return `${path}[${JSON.stringify(key)}]`;
    return path === "" ? key : `${path}.${key}`;
  }, "");

/** Objects whose members have names that the operator chooses. */
const named =
  /^(?:providers|prices|secrets\.keys|providers\.\w+\.(?:models|headers)|providers\.openai\.models\["openai\/gpt-5"\]\.tiers)$/;
/** Members that accept any text or are optional. */
const anyText = /reason$|\$schema$|host$|\.id$|version$|organization$|vendor$|headers/;

interface Fault {
  readonly name: string;
  readonly path: string;
  readonly value: unknown;
}

/** Copies the configuration and changes one place. `change` gets the object that contains it. */
function changed(keys: Keys, change: (parent: object, key: string | number) => void): unknown {
  const copy = structuredClone(valid());
  const parent = valueAt(copy, keys.slice(0, -1));
  const key = keys.at(-1);
  if (typeof parent === "object" && parent !== null && key !== undefined) change(parent, key);
  return copy;
}

const wrongType = (value: unknown): unknown =>
  typeof value === "object"
    ? 7
    : typeof value === "string"
      ? { a: 1 }
      : typeof value === "number"
        ? [value]
        : "yes";

const outside = (value: unknown): unknown =>
  typeof value === "string"
    ? `${value.toUpperCase()}/\u0000`
    : typeof value === "number"
      ? -1
      : undefined;

function faultsAt(keys: Keys): readonly Fault[] {
  const path = pathOf(keys);
  const value = valueAt(valid(), keys);
  const key = keys.at(-1);
  const parentPath = pathOf(keys.slice(0, -1));
  const set = (name: string, to: unknown): Fault => ({
    name,
    path,
    value: changed(keys, (parent, at) => Reflect.set(parent, at, to)),
  });
  const faults = [set("type", wrongType(value))];
  if (path !== "providers.openai.apiKey") faults.push(set("null", null));
  const beyond = outside(value);
  if (beyond !== undefined && !anyText.test(path)) faults.push(set("value", beyond));
  if (typeof key === "string" && !named.test(parentPath)) {
    const typo = `${key}x`;
    faults.push({
      name: "name",
      path: pathOf([...keys.slice(0, -1), typo]),
      value: changed(keys, (parent) => {
        Reflect.set(parent, typo, value);
        Reflect.deleteProperty(parent, key);
      }),
    });
  }
  if (typeof value === "object" && value !== null && !Array.isArray(value)) {
    for (const name of named.test(path)
      ? ["__proto__"]
      : ["__proto__", "constructor", "prototype", "hasOwnProperty"])
      faults.push({
        name: `prototype key ${name}`,
        path: pathOf([...keys, name]),
        value: changed(keys, (parent, at) => {
          const object: unknown = Reflect.get(parent, at);
          if (typeof object === "object" && object !== null)
            Object.defineProperty(object, name, { value: { type: "sim" }, enumerable: true });
        }),
      });
  }
  return faults;
}

const required: readonly Keys[] = [
  ["store"],
  ["store", "type"],
  ["store", "url"],
  ["providers"],
  ["providers", "openai", "type"],
  ["providers", "openai", "apiKey"],
  ["providers", "own", "baseURL"],
  ["providers", "sim", "type"],
  ["policy", "rules"],
  ["policy", "rules", 0, "effect"],
  ["policy", "rules", 0, "id"],
  ["budgets", 0, "id"],
  ["budgets", 0, "limit"],
  ["budgets", 0, "period"],
  ["secrets", "current"],
  ["secrets", "keys"],
  ["evidence", "name"],
  ["evidence", "privateKey"],
];

const faults: readonly Fault[] = [
  ...placesOf(valid()).flatMap(faultsAt),
  ...required.map((keys) => ({
    name: "missing",
    path: pathOf(keys),
    value: changed(keys, (parent, key) => void Reflect.deleteProperty(parent, key)),
  })),
];

it.each([
  ["budgets: [{ id: b, limit: { usd: .nan }, period: day }]", "budgets[0].limit"],
  ["budgets: [{ id: b, limit: { usd: .inf }, period: day }]", "budgets[0].limit"],
  ["budgets: [{ id: b, limit: { tokens: 1e3000 }, period: day }]", "budgets[0].limit"],
  ["budgets: [{ id: b, limit: { usd: 1 }, period: day, warnAt: [.nan] }]", "budgets[0].warnAt[0]"],
  ["deadlines: { total: .inf }", "deadlines.total"],
  ["limits: { bodyBytes: .inf }", "limits.bodyBytes"],
  ["policy:", "policy"],
  ["policy: { rules: [{ effect: permit, id: a, match: }] }", "policy.rules[0].match"],
  [
    "policy: { rules: [{ effect: permit, id: a, match: { user: [] } }] }",
    "policy.rules[0].match.user",
  ],
  [
    'policy: { rules: [{ effect: permit, id: a, match: { user: "${NOBODY:-}" } }] }',
    "policy.rules[0].match.user",
  ],
  ["policy: { rules: [{ effect: permit, id: a, match: { upTo: D1_INTERNL } }] }", "policy"],
  ["maintenance: yes", "maintenance"],
])("refuses the value that YAML reads from a typo: %s", async (line, path) => {
  const { problems } = await refusal(yamlText(`${small}${line}\n`));
  expect(problems[0]?.path).toBe(path);
});

it("lists the valid effects of a rule", async () => {
  const policy = { rules: [{ effect: "deny", id: "a" }] };
  expect((await refusal(yaml({ ...parsedSmall, policy }))).problems).toEqual([
    {
      path: "policy.rules[0].effect",
      message: "`policy.rules[0].effect` must be permit or forbid.",
    },
  ]);
});

it.each([
  ["budgets", "budgets: [{ id: b, limit: { tokens: 1e16 }, period: day }]"],
  ["serve", "serve: { port: -1e16 }"],
])("reports a number out of every range once in %s", async (_where, line) => {
  expect((await refusal(yamlText(`${small}${line}\n`))).problems).toHaveLength(1);
});

it("lists the valid types of a store", async () => {
  const { problems } = await refusal(yaml({ ...parsedSmall, store: { type: "mysql" } }));
  expect(problems[0]?.message).toMatch(/^`store\.type` must be one of \w+, \w+, \w+\.$/);
});

/** The path of the error if the misnamed member is the one that selects a type. */
const insteadOf: ReadonlyMap<string, string> = new Map([
  ["store.typex", "store.type"],
  ["providers.openai.typex", "providers.openai.type"],
  ["providers.own.typex", "providers.own.type"],
  ["providers.sim.typex", "providers.sim.type"],
  ["policy.rules[0].effectx", "policy.rules[0].effect"],
  ["policy.rules[1].effectx", "policy.rules[1].effect"],
  ["budgets[0].limit.usd", "budgets[0].limit"],
  ["budgets[0].limit.usdx", "budgets[0].limit"],
]);

describe("a fault in a valid configuration file", () => {
  it("is tested in over 300 places", () => {
    expect(faults.length).toBeGreaterThan(300);
  });

  it("is refused with its path before anything is opened", async () => {
    const accepted: string[] = [];
    for (const [at, { name, path, value }] of faults.entries()) {
      const text =
        at % 2 === 0 ? JSON.stringify(value) : stringify(value, { aliasDuplicateObjects: false });
      const file = written(`fault.${at % 2 === 0 ? "json" : "yaml"}`, text);
      const thrown = await load(file).catch((error: unknown) => error);
      const problems = thrown instanceof ConfigurationError ? thrown.problems : [];
      const isNamed = ({ path: at, message }: Problem): boolean =>
        at.startsWith(path) || message.includes(path) || insteadOf.get(path) === at;
      const found = problems.some(isNamed);
      if (!found)
        accepted.push(
          `${name} at ${path}: ${thrown instanceof Error ? thrown.message : "accepted"}`,
        );
      if (thrown instanceof Error) {
        expect(thrown.message).not.toContain(apiKey);
        expect(thrown.message).not.toContain(password);
        expect(thrown.message).not.toContain(keyEncryptionKey);
        expect(thrown.message).not.toContain(signingKey.split("\n")[1]);
      }
    }
    expect(accepted).toEqual([]);
  }, 60_000);
});

it("publishes a JSON Schema that accepts the same files", async () => {
  const schema = await configurationJsonSchema();
  expect(JSON.stringify(schema).length).toBeLessThan(100_000);
  const check = new Ajv2020({ strict: false }).compile({ ...schema });
  expect(check(valid())).toBe(true);
  expect(check(parsedSmall)).toBe(true);
  for (const change of [
    { polcy: {} },
    { store: { type: "sqlite", filname: "a.db" } },
    { store: { type: "redis" } },
    { providers: { a: { type: "openai-compatible", apiKey: null } } },
    { providers: { a: { type: "openai", baseUrl: "https://example.com" } } },
    { policy: { rules: [{ effect: "deny", id: "a" }] } },
  ])
    expect([change, check({ ...parsedSmall, ...change })]).toEqual([change, false]);
});
