import { expect } from "vitest";
import { failureIn } from "./messages-calls.ts";
import { failureOf } from "./wire.ts";

type Headers = Readonly<Record<string, string>>;

/** One of the endpoints that call a provider, asked as the others are. */
export interface Endpoint {
  readonly name: string;
  /** The fields of a user's message, or of a text to embed. */
  says(content: string): object;
  /** The fields that ask for a stream. None for embeddings, which are always plain. */
  readonly streamed: { readonly stream?: true };
  /** The tokens of output that a request holds, and those that the scripted provider reports. */
  readonly output: { readonly held: number; readonly reported: number };
  /** A signed request to `test/tollgate/scripted` that says `Hello`, with the default cap of 4,096 tokens. */
  request(secret: string, fields?: object, headers?: Headers): Request;
  /** Checks that an answer is this error in the endpoint's own form. */
  expectFailure(answer: Response | Promise<Response>, failure: Failure): Promise<void>;
}

/** One of the endpoints that hold conversations. */
export interface ConversationEndpoint extends Endpoint {
  /** The field that caps the output. */
  readonly cap: string;
  /** The part of a stream that says that its answer is complete. */
  readonly completes: RegExp;
}

interface Failure {
  readonly code: string;
  /** The type of the Messages API, whose errors have no code. */
  readonly messagesType: string;
  readonly message: RegExp;
}

const model = "test/tollgate/scripted";
const inMessages = (content: string) => ({ messages: [{ role: "user", content }] });
const inInput = (input: string) => ({ input });

const posted =
  (path: string, body: object): Endpoint["request"] =>
  (secret, fields = {}, headers = {}) =>
    new Request(`http://in-process/v1/${path}`, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        authorization: `Bearer ${secret}`,
        ...headers,
      },
      body: JSON.stringify({ model, ...body, ...fields }),
    });

const expectCode: Endpoint["expectFailure"] = async (answer, { code, message }) =>
  expect(await failureOf(answer)).toMatchObject({ code, message: expect.stringMatching(message) });

const conversation = { streamed: { stream: true }, output: { held: 4_096, reported: 5 } } as const;

/** Every endpoint that holds conversations. */
export const conversations: readonly ConversationEndpoint[] = [
  {
    ...conversation,
    name: "POST /v1/chat/completions",
    cap: "max_completion_tokens",
    completes: /"finish_reason":"/,
    says: inMessages,
    request: posted("chat/completions", inMessages("Hello")),
    expectFailure: expectCode,
  },
  {
    ...conversation,
    name: "POST /v1/responses",
    cap: "max_output_tokens",
    completes: /response\.completed/,
    says: inInput,
    request: posted("responses", inInput("Hello")),
    expectFailure: expectCode,
  },
  {
    ...conversation,
    name: "POST /v1/messages",
    cap: "max_tokens",
    completes: /message_delta|message_stop/,
    says: inMessages,
    request: posted("messages", { ...inMessages("Hello"), max_tokens: 4_096 }),
    expectFailure: async (answer, { messagesType: type, message }) =>
      expect((await failureIn(answer)).error).toEqual({
        type,
        message: expect.stringMatching(message),
      }),
  },
];

/** Every endpoint that calls a provider. */
export const endpoints: readonly Endpoint[] = [
  ...conversations,
  {
    name: "POST /v1/embeddings",
    says: inInput,
    streamed: {},
    output: { held: 0, reported: 0 },
    request: posted("embeddings", inInput("Hello")),
    expectFailure: expectCode,
  },
];

/** Whether an endpoint holds conversations. */
export function isConversation(endpoint: Endpoint): endpoint is ConversationEndpoint {
  return "cap" in endpoint;
}
