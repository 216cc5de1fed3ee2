import { agentsLoops } from "./agents-loops.ts";
import { aiSdkLoops } from "./ai-sdk-loops.ts";
import { anthropicLoops } from "./anthropic-loops.ts";
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
  ...anthropicLoops,
  "@openrouter/sdk chat": openrouterLoop,
};

/** The clients for Chat Completions, the protocol of the scripted upstreams. */
export const chatClients = Object.keys(clients).filter((name) => !/Responses|Messages/.test(name));

/** Clients that can't read streams: they reject `usage: null`, which every chunk except the last has. */
export const plainOnly: readonly string[] = ["@openrouter/sdk chat"];
