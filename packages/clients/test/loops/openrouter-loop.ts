import { type Converse, runTool, tools } from "./loop.ts";

interface Message {
  readonly role: string;
  readonly content?: unknown;
  readonly toolCallId?: string;
  readonly toolCalls?: readonly {
    readonly id: string;
    readonly function: { readonly name: string; readonly arguments: string };
  }[];
}

interface ChatCall {
  readonly model: string;
  readonly messages: readonly Message[];
  readonly tools: readonly object[];
  readonly stream: false;
}

/** The parts of the SDK that the loop uses. Its own types would change the global stream types in the whole workspace. */
interface OpenrouterSdk {
  readonly HTTPClient: new (options: { readonly fetcher: typeof fetch }) => object;
  readonly OpenRouter: new (options: {
    readonly serverURL: string;
    readonly apiKey: string;
    readonly httpClient: object;
  }) => {
    readonly chat: {
      send(call: { readonly chatRequest: ChatCall }): Promise<{
        readonly choices: readonly { readonly message: Message }[];
      }>;
    };
  };
}

const specifier: string = "@openrouter/sdk";

const offered = tools.map(({ name, description, parameters }) => ({
  type: "function" as const,
  function: { name, description, parameters },
}));

/** OpenRouter's SDK in a typical loop: each message is appended unchanged. It can't read this gateway's streams. */
export const openrouterLoop: Converse = async (target, prompts) => {
  const { baseURL, apiKey, model, fetch } = target;
  const { HTTPClient, OpenRouter }: OpenrouterSdk = await import(specifier);
  const httpClient = new HTTPClient({ fetcher: fetch });
  const { chat } = new OpenRouter({ serverURL: baseURL, apiKey, httpClient });
  const messages: Message[] = [];
  const answers: string[] = [];
  for (const content of prompts) {
    messages.push({ role: "user", content });
    for (;;) {
      const chatRequest = { model, messages, tools: offered, stream: false } as const;
      const { choices } = await chat.send({ chatRequest });
      const message = choices[0]?.message;
      if (message === undefined) throw new Error("The answer has no message.");
      messages.push(message);
      for (const { id, function: called } of message.toolCalls ?? [])
        messages.push({
          role: "tool",
          toolCallId: id,
          content: runTool(called.name, called.arguments),
        });
      if (message.toolCalls?.length) continue;
      answers.push(String(message.content));
      break;
    }
  }
  return answers;
};
