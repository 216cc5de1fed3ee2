import { existsSync, globSync, readFileSync } from "node:fs";
import { posix } from "node:path";
import { describe, expect, it } from "vitest";
import { createProgram } from "../../cli/src/main.ts";
import { defaultRetryRules } from "../../core/src/attempts/retry.ts";
import { defaultDeadlines, defaultLimits } from "../../core/src/domain/limits.ts";
import type { EndpointName } from "../../core/src/domain/step.ts";
import { errorShapes } from "../../core/src/errors/codes.ts";
import { defaultServerLimits } from "../../node/src/server-limits.ts";
import { markdownPage } from "../src/markdown.ts";
import { repositoryRoot } from "../src/repository.ts";
import { interfaceMembers, readSource } from "../src/source-file.ts";

const read = (path: string) => readFileSync(`${repositoryRoot}/${path}`, "utf8");
const page = (path: string) => markdownPage(read(path));
/** The row of a table whose first cell is a name, without that cell. */
const rowOf = (section: string, name: string): string | null =>
  section
    .split("\n")
    .find((line) => line.startsWith(`| \`${name}\` |`))
    ?.slice(`| \`${name}\` |`.length) ?? null;

describe("docs/reference/errors.md", () => {
  const errors = page("docs/reference/errors.md");
  const codes = Object.entries<{ status: number; type: string; retry?: boolean }>(errorShapes);

  it.each(codes)("has an anchor, the status and a sentence for %s", (code, shape) => {
    const retry =
      shape.retry === undefined ? "no `x-should-retry`" : `\`x-should-retry: ${shape.retry}\``;
    expect(errors.anchors.filter((anchor) => anchor === code)).toHaveLength(1);
    const [line, ...sentences] = errors.section(`\`${code}\``).trim().split("\n");
    expect(line).toBe(`${shape.status} · \`${shape.type}\` · ${retry}`);
    expect(sentences.join(" ").trim()).not.toBe("");
  });
});

describe("docs/reference/configuration.md", () => {
  const configuration = page("docs/reference/configuration.md");

  it.each([
    ["createGateway", "core/src/options.ts", "GatewayOptions"],
    ["limits", "core/src/domain/limits.ts", "Limits"],
    ["deadlines", "core/src/domain/limits.ts", "Deadlines"],
    ["retries", "core/src/attempts/retry.ts", "RetryRules"],
    ["authenticate", "core/src/contracts/authenticate.ts", "HostCaller"],
    ["A budget", "core/src/budgets/read-budget.ts", "BudgetConfiguration"],
    ["A model", "core/src/contracts/provider.ts", "ModelConfiguration"],
    ["openaiCompatible", "provider-openai/src/options.ts", "OpenaiCompatibleOptions"],
    ["openaiCompatible", "provider-http/src/configuration.ts", "HttpOptions"],
    ["anthropic", "provider-anthropic/src/options.ts", "AnthropicProviderOptions"],
    ["aiSdk", "provider-ai-sdk/src/options.ts", "AiSdkOptions"],
    ["catalogPrices", "prices/src/catalog-prices.ts", "CatalogPricesOptions"],
    ["toNodeHandler", "node/src/handler-options.ts", "NodeHandlerOptions"],
    ["serve", "node/src/serve.ts", "ServeOptions"],
    ["serve", "node/src/server-limits.ts", "ServerLimits"],
  ])("has under %s every member of %s, %s", (heading, file, name) => {
    const section = configuration.section(heading);
    const members = interfaceMembers(readSource(repositoryRoot, `packages/${file}`), name);
    expect(members.filter((member) => rowOf(section, member) === null)).toEqual([]);
  });

  it.each([
    ["limits", defaultLimits],
    ["deadlines", defaultDeadlines],
    ["retries", defaultRetryRules],
    ["serve", defaultServerLimits],
  ])("lists the defaults of %s", (heading, defaults) => {
    const section = configuration.section(heading);
    for (const [name, value] of Object.entries<number | boolean>({ ...defaults }))
      expect([name, rowOf(section, name)?.split("|")[0]?.trim()]).toEqual([
        name,
        value.toLocaleString("en-US"),
      ]);
  });

  it("lists every event that observers get", () => {
    const source = read("packages/core/src/contracts/observer.ts");
    const types = [...source.matchAll(/readonly type: "([a-z.]+)"/g)].map(([, type]) => type ?? "");
    expect(types.length).toBeGreaterThan(5);
    const section = configuration.section("Events");
    expect(types.filter((type) => rowOf(section, type) === null)).toEqual([]);
  });
});

describe("docs/concepts/policy.md", () => {
  const file = readSource(repositoryRoot, "packages/core/src/domain/obligations.ts");

  it.each(interfaceMembers(file, "Obligations"))("has a row for the obligation %s", (name) => {
    expect(rowOf(read("docs/concepts/policy.md"), name)).not.toBeNull();
  });
});

describe("docs/reference/http.md", () => {
  const http = page("docs/reference/http.md");
  const verdicts: Readonly<Record<string, string>> = {
    ignored: "no effect",
    unsupported: "refused",
  };
  const field = /^ {2}(\w+): (required|optional|ignored|renamed|unsupported)\(/gm;
  /** The members that several bodies have, by the name that their schemas spread. */
  const common = [
    ...read("packages/core/src/wire/common-fields.ts").matchAll(
      /^export const (\w+) = \{\n((?: {2}.*\n)+)\};/gm,
    ),
  ];

  /** The heading of each endpoint's body, its folder in `wire/`, and how many fields it has at least. */
  const bodies: Readonly<
    Record<EndpointName, readonly [heading: string, folder: string, least: number]>
  > = {
    chat_completions: ["POST /v1/chat/completions", "chat-completions", 26],
    responses: ["POST /v1/responses", "responses", 26],
    messages: ["POST /v1/messages", "messages", 26],
    embeddings: ["POST /v1/embeddings", "embeddings", 5],
  };

  it.each(Object.values(bodies))(
    "says for every field of %s whether it is supported",
    (heading, protocol, least) => {
      const schema = read(`packages/core/src/wire/${protocol}/schema.ts`);
      const shared = common.filter(([, name]) => schema.includes(`...${name},`));
      const own = schema.slice(schema.lastIndexOf("\nexport const"));
      const fields = [...[own, ...shared.map(([, , body]) => body)].join("\n").matchAll(field)];
      expect(fields.length).toBeGreaterThanOrEqual(least);
      const section = http.section(heading);
      for (const [, name = "", presence = ""] of fields)
        expect([name, rowOf(section, name)?.split("|")[0]?.trim()]).toEqual([
          name,
          verdicts[presence] ?? "supported",
        ]);
    },
  );

  it("lists every route", () => {
    const source = read("packages/core/src/endpoints/routes.ts");
    const routes = [...source.matchAll(/path: \/(\S+)\/, methods: \{ (.+) \} \}/g)];
    expect(routes.length).toBeGreaterThan(6);
    const shown = [...read("docs/reference/http.md").matchAll(/`([A-Z]+) \/v1\/([^\s`]+)`/g)];
    for (const [, path = "", methods = ""] of routes)
      for (const method of methods.match(/[A-Z]+/g)?.filter((word) => word.length > 2) ?? [])
        expect(
          shown.filter(
            ([, verb, place = ""]) =>
              verb === method && new RegExp(path).test(place.replace(/\{\w+\}/g, "x")),
          ),
          `${method} ${path}`,
        ).not.toEqual([]);
  });
});

describe("docs/reference/cli.md", () => {
  const cli = page("docs/reference/cli.md");
  const program = createProgram();
  type Command = (typeof program.commands)[number];
  // Every noun has `help`, which the introduction lists once.
  const inside = ({ commands }: Command) => commands.filter((each) => each.name() !== "help");
  const leaves = (command: Command): readonly Command[] =>
    command.commands.length === 0 ? [command] : inside(command).flatMap(leaves);

  it.each(inside(program).map((command) => [command.name(), command] as const))(
    "lists every command and option of %s",
    (name, noun) => {
      const section = cli.section(name);
      for (const command of leaves(noun)) {
        expect(section).toContain(
          command === noun ? `tollgate ${name}` : `\`${name} ${command.name()}`,
        );
        for (const { long } of command.options) expect(section).toContain(`\`${long}`);
      }
    },
  );

  it("lists the options of every command", () => {
    for (const { long } of program.options)
      expect(read("docs/reference/cli.md")).toContain(`\`${long}`);
  });
});

describe("links", () => {
  const paths = globSync(
    ["*.md", "llms.txt", "docs/**/*.md", "bench/*.md", "bench/measures/*.md"],
    {
      cwd: repositoryRoot,
    },
  );

  it.each(paths)("of %s lead to existing targets", (path) => {
    const broken = page(path).links.filter((link) => {
      const [target = "", anchor] = link.split("#");
      const to = target === "" ? path : posix.join(posix.dirname(path), target);
      if (!existsSync(`${repositoryRoot}/${to}`)) return true;
      return anchor !== undefined && !page(to).anchors.includes(anchor);
    });
    expect(broken).toEqual([]);
  });

  it("from the index reach every page", () => {
    const index = page("docs/README.md").links.map((link) =>
      posix.join("docs", link.split("#")[0] ?? ""),
    );
    expect(paths.filter((path) => path.startsWith("docs/") && !index.includes(path))).toEqual([
      "docs/README.md",
    ]);
  });
});

describe("decisions", () => {
  const paths = globSync("docs/decisions/*.md", { cwd: repositoryRoot }).sort();

  it("are numbered without a gap", () => {
    expect(paths.map((path) => Number(posix.basename(path).slice(0, 4)))).toEqual(
      paths.map((_, index) => index + 1),
    );
  });

  it.each(paths)("%s ends with when to revisit it", (path) => {
    expect(page(path).anchors.at(-1)).toBe("when-to-revisit");
    expect(page(path).section("When to revisit").trim()).not.toBe("");
  });
});
