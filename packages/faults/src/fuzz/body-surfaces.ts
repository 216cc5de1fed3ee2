import { createHash } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import { definePolicy } from "@tollgate/core/policy";
import type { CompletionRequest } from "@tollgate/core/provider";
import { jsonSchemaOf, requestSchema, rulePolicySchema } from "@tollgate/core/schemas";
import {
  estimateEmbedding,
  estimateInput,
  sizeOfMessages,
} from "../../../core/src/domain/estimate.ts";
import { defaultLimits, type Limits } from "../../../core/src/domain/limits.ts";
import { parseBody } from "../../../core/src/http/read-body.ts";
import { canonicalMessage } from "../../../core/src/sessions/canonical-message.ts";
import { parseChatCompletion } from "../../../core/src/wire/chat-completions/parse.ts";
import { parseEmbeddings } from "../../../core/src/wire/embeddings/embeddings.ts";
import { parseMessages } from "../../../core/src/wire/messages/parse.ts";
import { parseResponse } from "../../../core/src/wire/responses/parse.ts";
import { toMessages } from "../../../core/src/wire/responses/to-messages.ts";
import { createRequestWriter } from "../../../provider-openai/src/request-body.ts";
import { schemaGrammar, type WordsOf } from "./schema-grammar.ts";
import { accepted, type Outcome, outcomeOf, require, type Surface } from "./surface.ts";

/** Limits that small inputs reach, too. */
export const smallLimits: Limits = {
  ...defaultLimits,
  bodyBytes: 65_536,
  imageBodyBytes: 131_072,
  depth: 24,
  schemaDepth: 8,
  stringBytes: 8_192,
  keys: 64,
  values: 2_000,
  messages: 32,
  tools: 8,
};

const image = `data:image/png;base64,${Buffer.from("an image").toString("base64")}`;
const words: Readonly<Record<string, readonly [string, ...(readonly string[])]>> = {
  model: ["test/tollgate/scripted", "test/tollgate/other", "scripted", "a/b/c/d", "test/*/*"],
  url: [image, "https://images.test/a.png", "file:///etc/passwd", "data:text/html,x", "//x"],
  image_url: [image, "http://127.0.0.1/a.png", "data:image/png;base64,%%%", "javascript:x"],
  arguments: ["{}", '{"a":[1,{"b":"\\u00e9"}]}', "", "not JSON", "[".repeat(100), '{"a":1,"a":2}'],
  name: ["get_weather", "f", "a b", "x".repeat(65), "__proto__", "é"],
  call_id: ["call_1", "call_2", "call_3"],
  tool_call_id: ["call_1", "call_2", "call_3"],
  id: ["call_1", "call_2", "msg_1", "rs_0000000000004000800000000000000a_0", "resp_1"],
  previous_response_id: ["resp_00000000000040008000000000000001", "resp_1", ""],
  encrypted_content: ["tg1.AAAA.BBBB", "sealed", ""],
  signature: ["tg1:AAAA:test:BBBB", "signed", ""],
  data: [Buffer.from("an image").toString("base64"), "%%%", ""],
  tool_use_id: ["call_1", "call_2", "call_3"],
  session_id: ["00000000-0000-7000-8000-000000000001", "s", ""],
  turn_id: ["00000000-0000-7000-8000-000000000002", "t"],
};
const wordsOf: WordsOf = (member) =>
  Object.hasOwn(words, member) ? (words[member] ?? null) : null;

/** The errors of a body that is read alone. */
const bodyCodes = [
  "invalid_json",
  "invalid_type",
  "invalid_value",
  "missing_required_parameter",
  "request_too_large",
  "unknown_parameter",
  "unsupported_parameter",
  "unsupported_value",
] as const;

const writeRequest = createRequestWriter({
  maxTokensField: "max_completion_tokens",
  developerRole: "developer",
  forwardStore: true,
});

/** Everything that is done with an accepted request before it is sent. */
function prepare(request: CompletionRequest, stream: boolean): void {
  for (const message of request.messages)
    require(canonicalMessage(message).length > 0, "a message has no canonical form");
  const size = sizeOfMessages(request.messages);
  const estimate = estimateInput(request, size, 4_800);
  require(Number.isSafeInteger(estimate) && estimate >= 0, `the estimate is ${estimate}`);
  const { body, sha256 } = writeRequest({ upstreamName: "up", request, stream });
  const sent: unknown = JSON.parse(body.toString());
  require(typeof sent === "object" && sent !== null, "the upstream's body is not an object");
  const hash = createHash("sha256").update(body).digest("hex");
  require(sha256() === hash, "the upstream's body has another hash");
}

/** One in this many accepted bodies is read again in another layout. */
const layoutEvery = 16;

type Read = (body: object) => { readonly model: string };

/** Reads a body, and reads it again with spaces and escapes, which must change nothing. */
function readBody(input: Buffer, read: Read): Outcome | Promise<Outcome> {
  try {
    const body = parseBody(input, smallLimits);
    if (body instanceof Promise)
      return body.then(
        (parsed) => readAgain(input, read, parsed),
        (error) => outcomeOf(error, bodyCodes),
      );
    return readAgain(input, read, body);
  } catch (error) {
    return outcomeOf(error, bodyCodes);
  }
}

function readAgain(input: Buffer, read: Read, body: object): Outcome {
  try {
    const call = read(body);
    if (input.length % layoutEvery === 0) {
      const again = parseBody(Buffer.from(otherLayout(body)), smallLimits);
      if (!(again instanceof Promise))
        require(isDeepStrictEqual(read(again), call), "another layout of the body differs");
    }
    return accepted;
  } catch (error) {
    return outcomeOf(error, bodyCodes);
  }
}

/** The same JSON with line breaks, and with every letter of its texts that isn't ASCII as an escape. */
function otherLayout(body: object): string {
  return JSON.stringify(body, null, 1).replaceAll(
    /[\u007f-\uffff]/g,
    (letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

const chatGrammar = schemaGrammar(requestSchema("chat_completions"), wordsOf);
const responseSchema = requestSchema("responses");
const responseGrammar = schemaGrammar(responseSchema, wordsOf);

const messagesGrammar = schemaGrammar(requestSchema("messages"), wordsOf);

function readMessages(body: object): { readonly model: string } {
  const call = parseMessages(body, smallLimits);
  const messages = [...(call.system === null ? [] : [call.system]), ...call.groups.flat()];
  prepare({ ...call.options, messages }, call.stream);
  return call;
}

const embeddingsGrammar = schemaGrammar(requestSchema("embeddings"), wordsOf);

function readEmbeddings(body: object): { readonly model: string } {
  const call = parseEmbeddings(body, smallLimits);
  const { inputs } = call.request;
  const estimate = estimateEmbedding(call.request);
  require(Number.isSafeInteger(estimate) && estimate > 0, `the estimate is ${estimate}`);
  require(inputs.length > 0 && inputs.every(({ length }) => length > 0), "an input is empty");
  require(new Set(inputs.map((input) => typeof input)).size === 1, "the inputs differ in kind");
  return call;
}

function readChat(body: object): { readonly model: string } {
  const call = parseChatCompletion(body, smallLimits);
  prepare(call.request, call.stream);
  return call;
}

function readResponse(body: object): { readonly model: string } {
  const call = parseResponse(body, smallLimits, { toolOutputs: "parts" });
  const items = call.input.filter(({ type }) => type !== "item_reference");
  prepare({ ...call.options, messages: toMessages(items) }, call.stream);
  require(JSON.stringify(call.echo).length > 2, "the response has no echo");
  return call;
}

const facts = ["permit", "forbid"].map((organization) => ({
  organization,
  user: "jane",
  key: "key",
  source: "app",
  dataClass: "D1_INTERNAL",
  session: { dataClass: "D2_CONFIDENTIAL" },
  gateway: "test",
  vendor: "tollgate",
  model: "scripted",
  listed: true,
  connection: "platform" as const,
  tools: true,
  images: false,
  structuredOutput: false,
  serviceTier: "default",
  estimatedInputTokens: 1,
  estimatedOutputTokens: 1,
  estimatedCostNanoUsd: null,
}));
const dataClasses = ["D0_PUBLIC", "D1_INTERNAL", "D2_CONFIDENTIAL", "D3_RESTRICTED"];

/** A policy as data: read it, and decide with it. */
function runPolicy(input: Buffer): Outcome {
  let given: Parameters<typeof definePolicy>[0];
  try {
    given = JSON.parse(input.toString());
  } catch {
    return { code: "not JSON" };
  }
  try {
    const policy = definePolicy(given);
    const [one, other] = facts.map((each) => policy.decide(each, dataClasses));
    require(one?.effect === "permit" || one?.effect === "deny", "a verdict has no effect");
    require(other !== undefined, "a policy decided nothing");
    return accepted;
  } catch (error) {
    const outcome = outcomeOf(error, ["invalid_configuration"]);
    const problems: unknown = error instanceof Error && "problems" in error ? error.problems : [];
    const [first] = Array.isArray(problems) ? problems : [];
    const path = typeof first === "object" && first !== null ? Reflect.get(first, "path") : null;
    return {
      ...outcome,
      path: typeof path === "string" ? path.replaceAll(/\[\d+\]/g, "[]") : null,
    };
  }
}

const policyGrammar = schemaGrammar(
  { ...jsonSchemaOf(rulePolicySchema) },
  (member) =>
    ({
      organization: ["permit", "forbid", "*"] as const,
      model: ["*/*/*", "test/tollgate/*", "a/b", "test/*", "*".repeat(200)] as const,
      fallbacks: ["spare/a/b", "test/tollgate/scripted", "x"] as const,
      from: ["D0_PUBLIC", "D9", "D2_CONFIDENTIAL", "no such class"] as const,
      upTo: ["D1_INTERNAL", "D3_RESTRICTED", ""] as const,
      id: ["one", "two", "three", "four", "x".repeat(256)] as const,
    })[member] ?? null,
);

export const bodySurfaces: readonly Surface[] = [
  {
    name: "chat",
    share: 20,
    enough: 1_000_000,
    grammar: chatGrammar,
    paths: chatGrammar.paths,
    codes: [accepted.code, ...bodyCodes],
    run: (input) => readBody(input, readChat),
  },
  {
    name: "responses",
    share: 15,
    enough: 1_000_000,
    grammar: responseGrammar,
    paths: responseGrammar.paths,
    codes: [accepted.code, ...bodyCodes],
    run: (input) => readBody(input, readResponse),
  },
  {
    name: "messages",
    share: 15,
    enough: 1_000_000,
    grammar: messagesGrammar,
    paths: messagesGrammar.paths,
    codes: [accepted.code, ...bodyCodes],
    run: (input) => readBody(input, readMessages),
  },
  {
    name: "embeddings",
    share: 5,
    enough: 1_000_000,
    grammar: embeddingsGrammar,
    paths: embeddingsGrammar.paths,
    codes: [
      accepted.code,
      ...["invalid_json", "invalid_type", "invalid_value", "missing_required_parameter"],
      "unknown_parameter",
    ],
    run: (input) => readBody(input, readEmbeddings),
  },
  {
    name: "policies",
    share: 10,
    enough: 1_000_000,
    grammar: policyGrammar,
    paths: policyGrammar.paths,
    codes: [accepted.code, "invalid_configuration"],
    run: runPolicy,
  },
];
