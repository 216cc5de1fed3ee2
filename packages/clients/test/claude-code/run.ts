/**
 * `npm run clients:claude-code`: installs Claude Code and the Claude Agent SDK from npm into a temporary folder and runs
 * them, headless, over the gateway. Each makes a tool loop, resumes the Session with a sub-agent, and looks at an image.
 * The upstream is Anthropic's Messages API or a plain Chat Completions API, the store is in memory, SQLite or PostgreSQL.
 * Exits with 1 if a conversation isn't recorded as one Session with its Turns, Steps and cost.
 */
import { deepStrictEqual } from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { createGateway, type Gateway } from "@tollgate/core";
import { serve } from "@tollgate/node";
import { memoryStore } from "@tollgate/store-memory";
import { postgresStore } from "@tollgate/store-postgres";
import { sqliteStore } from "@tollgate/store-sqlite";
import { startPostgres } from "@tollgate/testing/postgres";
import { z } from "zod";
import { headlessEnvironment, installFromNpm, recordOf, reportEach } from "../installed-client.ts";
import { type Answer, model, type Script, upstreams } from "./upstreams.ts";

const run = promisify(execFile);
const maxCallMs = 60_000;
const organizationId = "acme";
const allowedTools = ["Read", "Agent", "Bash(echo:*)"];
/** One red pixel. */
const png =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC";

const printed = z.object({ session_id: z.string(), result: z.string() });

/** The conversation that a prompt goes on with; none begins one. */
type Before =
  | { readonly resume: string }
  | { readonly continue: true }
  | Readonly<Record<string, never>>;

/** Asks one prompt. */
type Ask = (
  prompt: string,
  place: { readonly cwd: string; readonly env: Readonly<Record<string, string>> },
  before: Before,
) => Promise<z.infer<typeof printed>>;

/** The part of the SDK that is used. */
interface AgentSdk {
  query(call: {
    readonly prompt: string;
    readonly options: object;
  }): AsyncIterable<{ readonly type: string }>;
}

/** One conversation: who asks, who answers, and who keeps it. */
interface Conversation {
  readonly client: string;
  readonly ask: Ask;
  readonly upstream: keyof typeof upstreams;
  readonly store: keyof typeof stores;
}

const folder = await mkdtemp(join(tmpdir(), "tollgate-claude-code-"));
const postgres = await startPostgres();
/** The stores, each for a conversation of its own. */
const stores = {
  memory: () => memoryStore(),
  sqlite: (home: string) => sqliteStore({ filename: join(home, "tollgate.db") }),
  postgres: (home: string) => postgresStore({ url: postgres.url }, { schema: basename(home) }),
};
try {
  const clients = await install();
  const conversations = Object.entries(clients).flatMap(([client, ask]) =>
    (["anthropic", "chat-completions"] as const).flatMap((upstream) =>
      (["memory", "sqlite", "postgres"] as const).map((store) => ({
        client,
        ask,
        upstream,
        store,
      })),
    ),
  );
  await reportEach(
    conversations,
    ({ client, upstream, store }) => `${client}, ${upstream}, ${store}`,
    converse,
  );
} finally {
  await postgres.stop();
  await rm(folder, { recursive: true, force: true });
}

/** Installs the clients, and prints their versions. */
async function install(): Promise<Readonly<Record<string, Ask>>> {
  const names = ["@anthropic-ai/claude-code", "@anthropic-ai/claude-agent-sdk"] as const;
  for (const installed of await installFromNpm(folder, names))
    process.stdout.write(`${installed}\n`);
  const sdk: AgentSdk = await import(
    pathToFileURL(join(folder, "node_modules", names[1], "sdk.mjs")).href
  );
  return {
    "claude-code": askCli(join(folder, "node_modules/.bin/claude")),
    "agent-sdk": askSdk(sdk),
  };
}

/** Asks through the command line. */
function askCli(cli: string): Ask {
  return async (prompt, place, before) => {
    const tools = ["--allowedTools", allowedTools.join(",")];
    const more = Object.entries(before).flatMap(([name, value]) =>
      value === true ? [`--${name}`] : [`--${name}`, value],
    );
    const line = ["-p", prompt, "--output-format", "json", ...tools, ...more];
    const running = run(cli, line, { ...place, timeout: maxCallMs });
    running.child.stdin?.end();
    return printed.parse(JSON.parse((await running).stdout));
  };
}

/** Asks through the SDK, with the Claude Code that it brings. */
function askSdk({ query }: AgentSdk): Ask {
  return async (prompt, place, before) => {
    const abortController = new AbortController();
    const timer = setTimeout(() => abortController.abort(), maxCallMs);
    const options = { ...place, ...before, allowedTools, abortController };
    try {
      for await (const message of query({ prompt, options }))
        if (message.type === "result") return printed.parse(message);
      throw new Error("The SDK gave no result.");
    } finally {
      clearTimeout(timer);
    }
  };
}

function environment(home: string, more: Readonly<Record<string, string>>) {
  return {
    ...headlessEnvironment(home),
    DISABLE_TELEMETRY: "1",
    DISABLE_AUTOUPDATER: "1",
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
    ...more,
  };
}

/** The script of the model: it reads a file, runs a command, asks a sub-agent and looks at an image. */
function scriptFor(project: string): Script {
  const read = (id: string, file: string): Answer => ({
    id,
    name: "Read",
    input: { file_path: join(project, file) },
  });
  const answers: readonly (readonly [said: string, answer: Answer])[] = [
    ["Read the note", read("toolu_1", "note.txt")],
    ["The word is heron", { id: "toolu_2", name: "Bash", input: { command: "echo wader" } }],
    ["wader", { text: "A heron, which is a wading bird." }],
    [
      "Ask a helper",
      {
        id: "toolu_3",
        name: "Agent",
        input: {
          description: "Names a colour",
          prompt: "Name one colour",
          subagent_type: "general-purpose",
          run_in_background: false,
        },
      },
    ],
    ["Name one colour", { text: "Turquoise." }],
    ["Turquoise", { text: "The helper says turquoise." }],
    ["Look at the image", read("toolu_4", "dot.png")],
  ];
  return (last) => answers.find(([said]) => last.includes(said))?.[1] ?? { text: "A red dot." };
}

async function converse(conversation: Conversation): Promise<void> {
  const { client, ask, upstream: upstreamName, store: storeName } = conversation;
  const home = join(folder, `${client}-${upstreamName}-${storeName}`.replaceAll("-", "_"));
  await mkdir(home);
  await writeFile(join(home, "note.txt"), "The word is heron.\n");
  await writeFile(join(home, "dot.png"), Buffer.from(png, "base64"));
  const upstream = await upstreams[upstreamName](scriptFor(home));
  const gateway = createGateway({
    store: stores[storeName](home),
    providers: { up: upstream.provider },
    aliases: { [model]: `up/${upstream.target}` },
  });
  const server = await serve(gateway, { port: 0 });
  try {
    const key = await gateway.keys.create({ organizationId, userId: "ada", label: client });
    const env = environment(home, {
      ANTHROPIC_BASE_URL: server.url,
      ANTHROPIC_AUTH_TOKEN: key.secret,
      ANTHROPIC_MODEL: model,
      ANTHROPIC_DEFAULT_HAIKU_MODEL: model,
      ANTHROPIC_CUSTOM_HEADERS: "X-Service-Data-Sensitivity: D2_CONFIDENTIAL",
    });
    const place = { cwd: home, env };
    const first = await ask("Read the note", place, {});
    const second = await ask("Ask a helper", place, { resume: first.session_id });
    const third = await ask("Look at the image", place, { continue: true });
    deepStrictEqual(
      [first.result, second.result, third.result],
      ["A heron, which is a wading bird.", "The helper says turquoise.", "A red dot."],
    );
    await requireRecord(gateway, upstream.stepCost);
  } finally {
    await server.close();
    await gateway.close();
    await upstream.close();
  }
}

/** Requires one Session with its Turns and Steps, and another of the sub-agent. */
async function requireRecord(gateway: Gateway, stepCost: number): Promise<void> {
  const { made, places } = await recordOf(gateway, organizationId);
  deepStrictEqual(places, [
    [0, 0, 0],
    [0, 0, 1],
    [0, 0, 2],
    [0, 1, 0],
    [1, 2, 0],
    [0, 1, 1],
    [0, 3, 0],
    [0, 3, 1],
  ]);
  for (const { costNanoUsd, dataClass, requestedModel } of made)
    deepStrictEqual([costNanoUsd, dataClass, requestedModel], [stepCost, "D2_CONFIDENTIAL", model]);
}
