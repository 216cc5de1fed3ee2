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

/** Every client of the matrix, by name. */
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

/** The clients for Chat Completions, the protocol of the scripted upstreams. */
export const chatClients = Object.keys(clients).filter((name) => !name.includes("Responses"));

/** Clients that can't read streams: they reject `usage: null`, which every chunk except the last has. */
export const plainOnly: readonly string[] = ["@openrouter/sdk chat"];

/** The AI SDK with its own Anthropic provider. */
export const anthropicLoop: Converse = aiSdk7Loop(({ baseURL, apiKey, model, fetch }) =>
  createAnthropic({ baseURL, apiKey, fetch })(model),
);
