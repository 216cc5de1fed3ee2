import type { Snippet } from "../../../house/src/markdown.ts";

/** A client, and how its guide is followed without a person. */
export interface GuidedClient {
  /** The page in `docs/guides/clients`. */
  readonly page: string;
  /** Finds the tested version on that page. */
  readonly version: RegExp;
  /** The packages at that version. */
  readonly packages: (version: string) => readonly string[];
  /** The page's block: its language and a part of its text. */
  readonly block: { readonly language: Snippet["language"]; readonly has: string };
  /** The part of the block that the page's text offers another way for, and where the text has it. */
  readonly variant?: { readonly part: string; readonly by: RegExp };
  /** The file with the block, and the lines after it; null if the block is the first of the commands. */
  readonly file: { readonly path: string; readonly more?: string } | null;
  /** The commands that make the two calls. */
  readonly commands: string;
  /** The command that stops the background process that the client leaves. */
  readonly stop?: string;
  /** The tool that the model calls after the first prompt; null for none. */
  readonly tool: { readonly name: string; readonly arguments: string } | null;
  /** The recorded Steps: the Session, the Turn and the number of each. */
  readonly record: readonly (readonly number[])[];
}

const plainTurns = [
  [0, 0, 0],
  [0, 1, 0],
];
const toolTurns = [
  [0, 0, 0],
  [0, 0, 1],
  [0, 1, 0],
];

/** The prompts of the two calls. */
export const prompts = ["Read the note", "Which colour is it?"] as const;

const llamaindex: GuidedClient = {
  page: "llamaindex.md",
  version: /`@llamaindex\/openai` (\d+\.\d+\.\d+)/,
  packages: (version) => [`@llamaindex/openai@${version}`],
  block: { language: "js", has: "@llamaindex/openai" },
  file: {
    path: "guide.mjs",
    more: `
const messages = [
  { role: "user", content: "Hello" },
  first.message,
  { role: "user", content: "${prompts[1]}" },
];
for await (const { delta } of await llm.chat({ messages, stream: true })) process.stdout.write(delta);
`,
  },
  commands: "node guide.mjs",
  tool: null,
  record: plainTurns,
};

const mastra: GuidedClient = {
  page: "mastra.md",
  version: /Mastra (\d+\.\d+\.\d+)/,
  packages: (version) => [`@mastra/core@${version}`, "@ai-sdk/openai-compatible@3.0.92"],
  block: { language: "js", has: "@mastra/core" },
  file: {
    path: "guide.mjs",
    more: `
import { createTool } from "@mastra/core/tools";
import { z } from "zod";

const note = createTool({
  id: "note",
  description: "Reads the note",
  inputSchema: z.object({}),
  execute: async () => ({ note: "The word is heron." }),
});
const first = await agent.generate("${prompts[0]}", { toolsets: { notes: { note } } });
const second = await agent.stream([
  { role: "user", content: "${prompts[0]}" },
  ...first.response.messages,
  { role: "user", content: "${prompts[1]}" },
]);
for await (const text of second.textStream) process.stdout.write(text);
`,
  },
  commands: "node guide.mjs",
  tool: { name: "note", arguments: "{}" },
  record: toolTurns,
};

/** The same with the address in the agent. */
const mastraAddress: GuidedClient = {
  ...mastra,
  variant: { part: 'model: tollgate("openai/openai/gpt-5-mini")', by: /`(model: \{.+?\})`/ },
};

const opencode: GuidedClient = {
  page: "coding-agents.md",
  version: /## opencode\n+Version (\d+\.\d+\.\d+)/,
  packages: (version) => [`opencode-ai@${version}`],
  block: { language: "json", has: "@ai-sdk/openai-compatible" },
  file: { path: "opencode.json" },
  commands: `
    opencode run --title Note "${prompts[0]}"
    opencode run --continue "${prompts[1]}"
  `,
  tool: { name: "read", arguments: '{"filePath":"note.txt"}' },
  record: toolTurns,
};

const codex: GuidedClient = {
  page: "codex.md",
  version: /Codex (\d+\.\d+\.\d+)/,
  packages: (version) => [`@openai/codex@${version}`],
  block: { language: "toml", has: "[model_providers.tollgate]" },
  file: { path: ".codex/config.toml" },
  commands: `
    codex exec --skip-git-repo-check "${prompts[0]}"
    codex exec resume --last --skip-git-repo-check "${prompts[1]}"
  `,
  tool: { name: "exec_command", arguments: '{"cmd":"cat note.txt"}' },
  record: toolTurns,
};

const continueCli: GuidedClient = {
  page: "coding-agents.md",
  version: /Version (\d+\.\d+\.\d+) of `@continuedev\/cli`/,
  packages: (version) => [`@continuedev/cli@${version}`],
  block: { language: "yaml", has: "schema: v1" },
  file: { path: ".continue/config.yaml" },
  commands: `
    cn -p "${prompts[0]}"
    cn -p --resume "${prompts[1]}"
  `,
  tool: { name: "Read", arguments: '{"filepath":"note.txt"}' },
  record: toolTurns,
};

const cline: GuidedClient = {
  page: "coding-agents.md",
  version: /Version (\d+\.\d+\.\d+) of `cline`/,
  packages: (version) => [`cline@${version}`],
  block: { language: "text", has: "cline auth" },
  file: null,
  commands: "",
  stop: "cline hub stop",
  tool: { name: "read_files", arguments: '{"files":[{"path":"note.txt"}]}' },
  record: toolTurns.slice(0, 2),
};

const copilot: GuidedClient = {
  page: "coding-agents.md",
  version: /## GitHub Copilot CLI\n+Version (\d+\.\d+\.\d+)/,
  packages: (version) => [`@github/copilot@${version}`],
  block: { language: "text", has: "COPILOT_PROVIDER_BASE_URL" },
  file: null,
  commands: "",
  tool: null,
  record: plainTurns,
};

/** The clients by name. */
export const clients: Readonly<Record<string, GuidedClient>> = {
  llamaindex,
  mastra,
  "mastra-address": mastraAddress,
  opencode,
  codex,
  continue: continueCli,
  cline,
  copilot,
};
