import type { BaseMessage } from "@langchain/core/messages";
import { HumanMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { ChatOpenAI } from "@langchain/openai";
import { createAgent } from "langchain";
import { type Converse, tools } from "./loop.ts";

/** LangChain's `createAgent`, which sends the messages in its state. */
const langchainLoop =
  (useResponsesApi: boolean): Converse =>
  async ({ baseURL, apiKey, model, stream, fetch }, prompts) => {
    const agent = createAgent({
      model: new ChatOpenAI({
        model,
        apiKey,
        maxRetries: 0,
        useResponsesApi,
        configuration: { baseURL, fetch },
      }),
      tools: tools.map(({ name, description, parameters, run }) =>
        tool((args: unknown) => run(args), { name, description, schema: parameters }),
      ),
    });
    const answers: string[] = [];
    let messages: BaseMessage[] = [];
    for (const prompt of prompts) {
      const input = { messages: [...messages, new HumanMessage(prompt)] };
      if (!stream) messages = (await agent.invoke(input)).messages;
      else
        for await (const [mode, state] of await agent.stream(input, {
          streamMode: ["messages", "values"],
        }))
          if (mode === "values") messages = state.messages;
      answers.push(messages.at(-1)?.text ?? "");
    }
    return answers;
  };

export const langchainLoops = {
  "langchain createAgent, chat": langchainLoop(false),
  "langchain createAgent, Responses": langchainLoop(true),
};
