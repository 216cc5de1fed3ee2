import type { HistoryRequest, ReceivedAnswer } from "../histories/ask.ts";
import { referenceIn } from "../histories/ask.ts";
import { scriptUpstream } from "../histories/upstream.ts";
import type { Trial } from "./trial.ts";

/** Requests of clients, and their allowed statuses in addition to 503. */
export interface Scenario {
  readonly name: string;
  readonly statuses: readonly number[];
  /** In requests; the one hard budget of the scenario. */
  readonly limit?: number;
  run(trial: Trial): Promise<void>;
}

const model = "test/tollgate/scripted";
const hello = { role: "user", content: "Hello" };
const tools = [{ type: "function", function: { name: "look", parameters: { type: "object" } } }];

const chat = (body: object = {}): Omit<HistoryRequest, "secret"> => ({
  path: "chat/completions",
  body: { model, messages: [hello], ...body },
});
const respond = (body: object): Omit<HistoryRequest, "secret"> => ({
  path: "responses",
  body: { model, input: "Hello", ...body },
});
const message = (body: object = {}): Omit<HistoryRequest, "secret"> => ({
  path: "messages",
  body: { model, max_tokens: 64, messages: [hello], ...body },
});
const embed = (body: object = {}): Omit<HistoryRequest, "secret"> => ({
  path: "embeddings",
  body: { model, input: ["Hello", "you"], ...body },
});
const isWhole = (answer: ReceivedAnswer): boolean => referenceIn(answer) !== null;

/** Everything that a client can start, with the calls of the store that it makes. */
export const scenarios: readonly Scenario[] = [
  {
    name: "a plain answer",
    statuses: [200],
    run: async ({ ask }) => void (await ask(chat())),
  },
  {
    name: "a streamed answer",
    statuses: [200],
    run: async ({ ask }) => void (await ask(chat({ stream: true }))),
  },
  {
    name: "callers that the host authenticated",
    statuses: [200],
    async run({ askAs }) {
      await askAs(chat());
      await askAs(chat({ stream: true }));
    },
  },
  {
    name: "a tool loop",
    statuses: [200],
    async run({ ask, provider }) {
      scriptUpstream(provider, "callTool");
      const first = await ask(chat({ tools }));
      const message = referenceIn(first)?.message;
      if (!message) return;
      const result = { role: "tool", tool_call_id: "call_1", content: "3" };
      await ask(chat({ tools, stream: true, messages: [hello, message, result] }));
    },
  },
  {
    name: "a chain of responses",
    statuses: [200],
    async run({ ask, askWithoutBody }) {
      const first = referenceIn(await ask(respond({})));
      if (!first) return;
      const second = await ask(respond({ previous_response_id: first.id, stream: true }));
      if (!isWhole(second)) return;
      await askWithoutBody("GET", `responses/${referenceIn(second)?.id}`);
      await askWithoutBody("GET", `responses/${referenceIn(second)?.id}/input_items`);
      await askWithoutBody("DELETE", `responses/${first.id}`);
    },
  },
  {
    name: "a tool loop of Messages",
    statuses: [200],
    async run({ ask, provider }) {
      scriptUpstream(provider, "callTool");
      const own = { tools: [{ name: "look", input_schema: { type: "object" } }] };
      const called = referenceIn(await ask(message(own)))?.message;
      if (!called) return;
      const content = [{ type: "tool_result", tool_use_id: "call_1", content: "3" }];
      const messages = [hello, called, { role: "user", content }];
      await ask(message({ ...own, stream: true, messages }));
    },
  },
  {
    name: "a client that leaves Messages, and an upstream that breaks it off",
    statuses: [200, 502],
    async run({ ask, askAndLeave, provider }) {
      provider.reply({ text: ["One", " two", " three"], pace: "5s" });
      await askAndLeave(message({ stream: true }));
      scriptUpstream(provider, "break");
      await ask(message({ stream: true }));
    },
  },
  {
    name: "embeddings",
    statuses: [200],
    run: async ({ ask }) => void (await ask(embed())),
  },
  {
    name: "embeddings that are denied, fall back, break off, and whose client leaves",
    statuses: [200, 403, 502],
    async run({ ask, askAndLeave, provider }) {
      await ask(embed({ model: "test/tollgate/denied" }));
      scriptUpstream(provider, "exhaust");
      await ask(embed());
      scriptUpstream(provider, "break");
      await ask(embed());
      provider.reply({ embeddings: [[1], [2]], pace: "5s" });
      await askAndLeave(embed());
    },
  },
  {
    name: "a denial",
    statuses: [403],
    run: async ({ ask }) => void (await ask(chat({ model: "test/tollgate/denied" }))),
  },
  {
    name: "a budget that is exhausted",
    statuses: [200, 429],
    limit: 1,
    async run({ ask }) {
      if (isWhole(await ask(chat()))) await ask(chat());
    },
  },
  {
    name: "a fallback",
    statuses: [200],
    async run({ ask, provider }) {
      scriptUpstream(provider, "exhaust");
      await ask(chat({ stream: true }));
    },
  },
  {
    name: "a client that leaves in the middle of a stream",
    statuses: [200],
    async run({ askAndLeave, provider }) {
      provider.reply({ text: ["One", " two", " three"], pace: "5s" });
      await askAndLeave(chat({ stream: true }));
    },
  },
  {
    name: "an upstream that breaks off",
    statuses: [200, 502],
    async run({ ask, provider }) {
      scriptUpstream(provider, "break");
      await ask(chat({ stream: true }));
      scriptUpstream(provider, "break");
      await ask(chat());
    },
  },
];
