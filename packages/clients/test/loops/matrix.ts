import { createAnthropic } from "@ai-sdk/anthropic";
import { createGateway, type Gateway, type StepRecord } from "@tollgate/core";
import { serve } from "@tollgate/node";
import { aiSdk } from "@tollgate/provider-ai-sdk";
import { openaiCompatible } from "@tollgate/provider-openai";
import { memoryStore } from "@tollgate/store-memory";
import { startAnthropic } from "../upstreams/anthropic-upstream.ts";
import {
  startDeepseek,
  startGemini,
  startKimi,
  startStateless,
} from "../upstreams/chat-upstreams.ts";
import { requestsOfConversation, turns } from "../upstreams/script.ts";
import type { LoopUpstream } from "../upstreams/upstream-server.ts";
import { anthropicLoop } from "./anthropic-loops.ts";
import { clients } from "./clients.ts";
import { fetchWithoutState } from "./loop.ts";

const starts = {
  stateless: startStateless,
  deepseek: startDeepseek,
  kimi: startKimi,
  gemini: startGemini,
  anthropic: startAnthropic,
};

/** The name of a scripted upstream. */
export type UpstreamName = keyof typeof starts;

export const upstreamNames: readonly UpstreamName[] = [
  "stateless",
  "deepseek",
  "kimi",
  "gemini",
  "anthropic",
];

const models: Readonly<Record<UpstreamName, string>> = {
  stateless: "openai/gpt-4.1",
  deepseek: "deepseek/deepseek-v4-pro",
  kimi: "moonshotai/kimi-k2-thinking",
  gemini: "google/gemini-3-pro-preview",
  anthropic: "anthropic/claude-sonnet-4-5",
};

/** One conversation of the matrix. */
export interface Cell {
  readonly client: string;
  readonly upstream: UpstreamName;
  readonly stream: boolean;
  /** Whether the client may keep its copy of the provider's state. Otherwise it is removed from its requests. */
  readonly keepsState: boolean;
}

/** All scripted upstreams, and a gateway in front of them that listens on a port. */
export interface Matrix {
  /** Runs the conversation directly with the upstream. Returns why it failed, or null. */
  direct(cell: Cell): Promise<string | null>;
  /** Runs the same conversation through the gateway with its own user, and compares the records. */
  governed(cell: Cell): Promise<string | null>;
  stop(): Promise<void>;
}

const organizationId = "acme";
const prompts = turns.map(({ prompt }) => prompt);
const answers = turns.map(({ answer }) => answer).join("\n");

export async function startMatrix(): Promise<Matrix> {
  const upstreams = {
    stateless: await starts.stateless(),
    deepseek: await starts.deepseek(),
    kimi: await starts.kimi(),
    gemini: await starts.gemini(),
    anthropic: await starts.anthropic(),
  };
  const gateway = createGateway({ store: memoryStore(), providers: providersOf(upstreams) });
  const server = await serve(gateway, { port: 0 });
  let users = 0;

  async function converse(cell: Cell, to: Target): Promise<string | null> {
    const { stream, upstream } = cell;
    const refused = upstreams[upstream].refusals().length;
    const used = cell.keepsState ? fetch : fetchWithoutState;
    const problem = await to.converse({ ...to, stream, fetch: used }, prompts).then(
      (given) => (given.join("\n") === answers ? null : `answered ${given.join(" | ")}`),
      (error: unknown) => `threw ${error}`,
    );
    const refusal = upstreams[upstream].refusals()[refused];
    return refusal === undefined ? problem : `the upstream refused: ${refusal}`;
  }

  return {
    direct: (cell) =>
      converse(cell, {
        converse: cell.upstream === "anthropic" ? anthropicLoop : clientOf(cell.client),
        baseURL: `${upstreams[cell.upstream].url}/v1`,
        apiKey: "unused",
        model: models[cell.upstream].replace(/^.*\//, ""),
      }),
    async governed(cell) {
      const userId = `user-${++users}`;
      const { secret } = await gateway.keys.create({ organizationId, userId, label: "laptop" });
      const problem = await converse(cell, {
        converse: clientOf(cell.client),
        baseURL: `${server.url}/v1`,
        apiKey: secret,
        model: `${cell.upstream}/${models[cell.upstream]}`,
      });
      return problem ?? (await recordProblem(gateway, userId, upstreams[cell.upstream]));
    },
    async stop() {
      await server.close();
      await gateway.close();
      await Promise.all(Object.values(upstreams).map((upstream) => upstream.stop()));
    },
  };
}

interface Target {
  readonly converse: (typeof clients)[string];
  readonly baseURL: string;
  readonly apiKey: string;
  readonly model: string;
}

function clientOf(name: string): (typeof clients)[string] {
  const converse = clients[name];
  if (converse === undefined) throw new Error(`Unknown client: ${name}.`);
  return converse;
}

function providersOf(upstreams: Readonly<Record<UpstreamName, LoopUpstream>>) {
  const chat = (name: UpstreamName) =>
    openaiCompatible({
      baseURL: `${upstreams[name].url}/v1`,
      apiKey: null,
      models: { [models[name]]: { input: "1", output: "2", maxOutputTokens: 1_000 } },
    });
  return {
    stateless: chat("stateless"),
    deepseek: chat("deepseek"),
    kimi: chat("kimi"),
    gemini: chat("gemini"),
    anthropic: aiSdk(
      ({ fetch }) =>
        createAnthropic({ baseURL: `${upstreams.anthropic.url}/v1`, apiKey: "unused", fetch }),
      {
        hosts: [new URL(upstreams.anthropic.url).host],
        models: { [models.anthropic]: { input: "1", output: "2", maxOutputTokens: 1_000 } },
      },
    ),
  };
}

/** The position of every Step in its Turn, oldest first. */
const expectedSteps = turns.flatMap(({ steps }, turn) =>
  Array.from({ length: steps.length + 1 }, (_, step) => `${turn}.${step}`),
);

/** Checks that a conversation is recorded as one Session with a Turn for each question. Returns null if it is. */
async function recordProblem(
  gateway: Gateway,
  user: string,
  upstream: LoopUpstream,
): Promise<string | null> {
  const { data } = await gateway.steps.list({ organizationId, user }, { limit: 100 });
  const steps = data.toReversed();
  const sessions = new Set(steps.map(({ sessionId }) => sessionId ?? "none"));
  if (sessions.size !== 1) return `${sessions.size} Sessions of ${steps.length} Steps`;
  const turnIds = [...new Set(steps.map(({ turnId }) => turnId))];
  const positionOf = (step: StepRecord) => `${turnIds.indexOf(step.turnId)}.${step.stepNumber}`;
  const positions = steps.map(positionOf).join(" ");
  if (positions !== expectedSteps.join(" ")) return `Steps ${positions}`;
  const failed = steps.find(({ outcome }) => outcome !== "completed");
  if (failed !== undefined) return `a Step is ${failed.outcome}`;
  return stateProblem(gateway, [...sessions], upstream);
}

/** Every call in the transcript must have the state that the provider sent with it. */
async function stateProblem(
  gateway: Gateway,
  sessions: readonly string[],
  upstream: LoopUpstream,
): Promise<string | null> {
  for (const id of sessions) {
    const entries = await gateway.sessions.transcript({ organizationId, id });
    const messages = entries.flatMap((entry) => entry.messages ?? []);
    for (const message of messages) {
      if (message.role !== "assistant") continue;
      const recorded = JSON.stringify(message);
      for (const call of message.tool_calls ?? []) {
        const state = upstream.stateOf(call.id);
        if (state !== undefined && !recorded.includes(JSON.stringify(state).slice(1, -1)))
          return `the transcript lacks the state of ${call.id}`;
      }
    }
    const recorded = messages.filter(({ role }) => role === "assistant").length;
    if (recorded !== requestsOfConversation) return `the transcript has ${recorded} answers`;
  }
  return null;
}
