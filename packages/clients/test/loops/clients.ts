import { createAnthropic } from "@ai-sdk/anthropic";
import { agentsLoops } from "./agents-loops.ts";
import { aiSdk7Loop, aiSdkLoops } from "./ai-sdk-loops.ts";
import { langchainLoops } from "./langchain-loops.ts";
import type { Converse } from "./loop.ts";
import {
  chainedResponsesLoop,
  chatLoop,
  runToolsLoop,
  statelessResponsesLoop,
} from "./openai-loops.ts";
import { openrouterLoop } from "./openrouter-loop.ts";

/** Every client of the matrix by its name. */
export const clients: Readonly<Record<string, Converse>> = {
  "openai chat": chatLoop,
  "openai runTools": runToolsLoop,
  "openai Responses": statelessResponsesLoop,
  "openai Responses, chained": chainedResponsesLoop,
  ...aiSdkLoops,
  ...agentsLoops,
  ...langchainLoops,
  "@openrouter/sdk chat": openrouterLoop,
};

/** The clients that speak Chat Completions, which the scripted upstreams speak, too. */
export const chatClients = Object.keys(clients).filter((name) => !name.includes("Responses"));

/** The clients that read no stream: their schema of one takes no `usage: null`, which every chunk but the last has. */
export const plainOnly: readonly string[] = ["@openrouter/sdk chat"];

/** The AI SDK's own way to Anthropic. */
export const anthropicLoop: Converse = aiSdk7Loop(({ baseURL, apiKey, model, fetch }) =>
  createAnthropic({ baseURL, apiKey, fetch })(model),
);
