import { LLMock } from "@copilotkit/aimock";

/** The usage of every complete answer. */
export const upstreamUsage = { prompt_tokens: 12, completion_tokens: 3 };

/** The prompts that the upstream knows, and its answers. */
export const scripted = {
  hello: "Hello there, how are you?",
  degrees: { city: "Paris", degrees: 18 },
  weather: "It is 18 degrees in Paris.",
  image: "A small red square.",
} as const;

export interface Upstream {
  readonly url: string;
  /** The JSON bodies of its requests, oldest first. */
  bodies(): readonly unknown[];
  /** Answers the next request with this status. */
  failNext(status: number): void;
  stop(): Promise<void>;
}

/** A third-party OpenAI-compatible server with scripted answers. */
export async function startUpstream(): Promise<Upstream> {
  const usage = upstreamUsage;
  const mock = new LLMock({ port: 0, logLevel: "silent" });
  mock
    .on({ userMessage: "Say hello" }, { content: scripted.hello, usage }, { chunkSize: 5 })
    .on({ userMessage: "in this image" }, { content: scripted.image, usage })
    .on({ userMessage: "As JSON" }, { content: JSON.stringify(scripted.degrees), usage })
    .on(
      { userMessage: "the weather", hasToolResult: false },
      {
        toolCalls: [{ id: "call_paris", name: "get_weather", arguments: '{"city":"Paris"}' }],
        usage,
      },
    )
    .on({ userMessage: "the weather", hasToolResult: true }, { content: scripted.weather, usage })
    .on(
      { userMessage: "Break off" },
      { content: "This answer never comes to its end." },
      { chunkSize: 5, truncateAfterChunks: 4, latency: 15 },
    );
  await mock.start();
  return {
    url: mock.url,
    bodies: () => mock.getRequests().map(({ body }) => body),
    failNext: (status) => void mock.nextRequestError(status, { message: "upstream secret" }),
    stop: () => mock.stop(),
  };
}
