/**
 * `npm run clients:claude-code`: installs Claude Code from npm into a temporary folder and runs it, headless, over the
 * gateway. It makes a tool loop, resumes the Session with a sub-agent, and looks at an image. The upstream is Anthropic's
 * Messages API or a plain Chat Completions API, the store is in memory, SQLite or PostgreSQL. `--cli` names an installed
 * `claude` instead. Exits with 1 if a conversation isn't recorded as one Session with its Turns, Steps and cost.
 */
import { deepStrictEqual } from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { parseArgs, promisify } from "node:util";
import { createGateway } from "@tollgate/core";
import { serve } from "@tollgate/node";
import { memoryStore } from "@tollgate/store-memory";
import { postgresStore } from "@tollgate/store-postgres";
import { sqliteStore } from "@tollgate/store-sqlite";
import { startPostgres } from "@tollgate/testing/postgres";
import { z } from "zod";
import { type Answer, model, type Script, upstreams } from "./upstreams.ts";

const run = promisify(execFile);
const maxInstallMs = 300_000;
const maxCallMs = 60_000;
const organizationId = "acme";
const path = process.env["PATH"] ?? "";
/** One red pixel. */
const png =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC";

const printed = z.object({ session_id: z.string(), result: z.string() });

const { values } = parseArgs({ options: { cli: { type: "string" } } });
const folder = await mkdtemp(join(tmpdir(), "tollgate-claude-code-"));
const postgres = await startPostgres();
/** The stores, each for a conversation of its own. */
const stores = {
  memory: () => memoryStore(),
  sqlite: (home: string) => sqliteStore({ filename: join(home, "tollgate.db") }),
  postgres: (home: string) => postgresStore({ url: postgres.url }, { schema: basename(home) }),
};
let failures = 0;
try {
  const cli = values.cli ?? (await install());
  const { stdout: version } = await run(cli, ["--version"], environment(folder, {}));
  print(`Claude Code ${version.trim()}`);
  for (const upstream of ["anthropic", "chat-completions"] as const)
    for (const store of ["memory", "sqlite", "postgres"] as const) {
      const problem = await converse(cli, upstream, store).then(
        () => null,
        (error: unknown) => (error instanceof Error ? error.message : String(error)),
      );
      print(`${upstream}, ${store}: ${problem ?? "pass"}`);
      if (problem !== null) failures += 1;
    }
} finally {
  await postgres.stop();
  await rm(folder, { recursive: true, force: true });
}
process.exitCode = failures === 0 ? 0 : 1;

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

async function install(): Promise<string> {
  const options = { cwd: folder, timeout: maxInstallMs };
  await writeFile(join(folder, "package.json"), "{}");
  await run("npm", ["install", "--no-audit", "--no-fund", "@anthropic-ai/claude-code"], options);
  return join(folder, "node_modules/.bin/claude");
}

function environment(home: string, more: Readonly<Record<string, string>>) {
  const quiet = {
    DISABLE_TELEMETRY: "1",
    DISABLE_AUTOUPDATER: "1",
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
  };
  return { cwd: home, timeout: maxCallMs, env: { PATH: path, HOME: home, ...quiet, ...more } };
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

async function converse(
  cli: string,
  upstreamName: keyof typeof upstreams,
  storeName: keyof typeof stores,
): Promise<void> {
  const home = join(folder, `${upstreamName}-${storeName}`.replaceAll("-", "_"));
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
    const key = await gateway.keys.create({ organizationId, userId: "ada", label: "claude-code" });
    const options = environment(home, {
      ANTHROPIC_BASE_URL: server.url,
      ANTHROPIC_AUTH_TOKEN: key.secret,
      ANTHROPIC_MODEL: model,
      ANTHROPIC_DEFAULT_HAIKU_MODEL: model,
      ANTHROPIC_CUSTOM_HEADERS: "X-Service-Data-Sensitivity: D2_CONFIDENTIAL",
    });
    const ask = async (prompt: string, ...more: readonly string[]) => {
      const tools = ["--allowedTools", "Read,Agent,Bash(echo:*)"];
      const line = ["-p", prompt, "--output-format", "json", ...tools, ...more];
      const running = run(cli, line, options);
      running.child.stdin?.end();
      return printed.parse(JSON.parse((await running).stdout));
    };
    const first = await ask("Read the note");
    const second = await ask("Ask a helper", "--resume", first.session_id);
    const third = await ask("Look at the image", "--continue");
    deepStrictEqual(
      [first.result, second.result, third.result],
      ["A heron, which is a wading bird.", "The helper says turquoise.", "A red dot."],
    );
    const { data } = await gateway.steps.list({ organizationId });
    const made = data.toReversed();
    const sessions = [...new Set(made.map(({ sessionId }) => sessionId))];
    const turns = [...new Set(made.map(({ turnId }) => turnId))];
    deepStrictEqual(
      made.map((step) => [
        sessions.indexOf(step.sessionId),
        turns.indexOf(step.turnId),
        step.stepNumber,
      ]),
      [
        [0, 0, 0],
        [0, 0, 1],
        [0, 0, 2],
        [0, 1, 0],
        [1, 2, 0],
        [0, 1, 1],
        [0, 3, 0],
        [0, 3, 1],
      ],
    );
    for (const { costNanoUsd, dataClass, requestedModel } of made)
      deepStrictEqual(
        [costNanoUsd, dataClass, requestedModel],
        [upstream.stepCost, "D2_CONFIDENTIAL", model],
      );
  } finally {
    await server.close();
    await gateway.close();
    await upstream.close();
  }
}
