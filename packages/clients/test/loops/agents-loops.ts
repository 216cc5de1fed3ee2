import {
  Agent,
  type AgentInputItem,
  type Model,
  OpenAIChatCompletionsModel,
  OpenAIResponsesModel,
  Runner,
  setTracingDisabled,
  tool,
} from "@openai/agents";
import OpenAI from "openai";
import { type Converse, type LoopTarget, tools } from "./loop.ts";

const clientOf = ({ baseURL, apiKey, fetch }: LoopTarget) =>
  new OpenAI({ baseURL, apiKey, fetch, maxRetries: 0 });

/** OpenAI Agents: the history continues as items, or by the id of the last response. */
const agentsLoop =
  (make: (target: LoopTarget) => Model, chained: boolean): Converse =>
  async (target, prompts) => {
    setTracingDisabled(true);
    const runner = new Runner({ tracingDisabled: true });
    const agent = new Agent({
      name: "Assistant",
      model: make(target),
      tools: tools.map(({ name, description, shape, run }) =>
        tool({ name, description, parameters: shape, execute: async (args) => run(args) }),
      ),
    });
    const answers: string[] = [];
    let history: AgentInputItem[] = [];
    let previousResponseId: string | undefined;
    for (const content of prompts) {
      const input = [...history, { role: "user" as const, content }];
      const options = previousResponseId === undefined ? {} : { previousResponseId };
      const result = target.stream
        ? await runner.run(agent, input, { ...options, stream: true })
        : await runner.run(agent, input, options);
      if ("completed" in result) {
        for await (const _ of result.toTextStream());
        await result.completed;
      }
      answers.push(result.finalOutput ?? "");
      if (chained) previousResponseId = result.lastResponseId;
      else history = result.history;
    }
    return answers;
  };

const responses = (target: LoopTarget) => new OpenAIResponsesModel(clientOf(target), target.model);
const chat = (target: LoopTarget) => new OpenAIChatCompletionsModel(clientOf(target), target.model);

export const agentsLoops = {
  "@openai/agents chat": agentsLoop(chat, false),
  "@openai/agents Responses": agentsLoop(responses, false),
  "@openai/agents Responses, chained": agentsLoop(responses, true),
};
