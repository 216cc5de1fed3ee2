import { isUtf8 } from "node:buffer";
import { isDeepStrictEqual } from "node:util";
import type { CompletionEvent } from "@tollgate/core/provider";
import { endpointOf } from "../../../core/src/endpoints/routes.ts";
import type { RequestHeaders } from "../../../core/src/http/gateway-request.ts";
import {
  bearerToken,
  requireJsonBody,
  requireSmallHeaders,
} from "../../../core/src/http/headers.ts";
import { pathAfterV1, queryOf } from "../../../core/src/http/path-after-v1.ts";
import { anthropicDialect } from "../../../provider-anthropic/src/anthropic.ts";
import { EventStream } from "../../../provider-http/src/event-stream.ts";
import { openaiDialect } from "../../../provider-openai/src/openai-compatible.ts";
import { messagesStreamGrammar, messagesWholeGrammar } from "./messages-grammar.ts";
import { accepted, type Outcome, outcomeOf, require, type Surface } from "./surface.ts";
import { runWholeAnswer } from "./whole-answers.ts";
import { headGrammar, streamGrammar, upstreamCredential } from "./wire-grammars.ts";

/** The text, calls and failure of a stream. They must not depend on how it is cut into reads. */
interface ReadStream {
  readonly said: Readonly<Record<string, string>>;
  readonly failure: string | null;
}

const eventBytes = 65_536;
const secrets = [upstreamCredential];
const openai = openaiDialect({});
const anthropic = anthropicDialect({});
type Dialect = typeof openai;

/** Reads an event stream in pieces of these sizes, over and over. */
function readStream(dialect: Dialect, input: Buffer, sizes: readonly number[]): ReadStream {
  const answer = dialect.createReader({ seed: "seed", secrets });
  const stream = new EventStream(answer, { eventBytes, secrets, dialect });
  const events: CompletionEvent[] = [];
  let failure: string | null = null;
  try {
    for (let at = 0, piece = 0; at < input.length && !stream.done(); piece++) {
      const size = sizes[piece % sizes.length] ?? 1;
      stream.feed(input.subarray(at, at + size), events);
      at += size;
    }
    answer.finish(events);
  } catch (error) {
    failure = reasonOf(error);
  }
  return { said: saidIn(events), failure };
}

/** The reason of a ProviderError. Throws any other error. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error) || error.name !== "ProviderError" || !("reason" in error))
    throw error;
  require(!JSON.stringify([error.message, error]).includes(
    upstreamCredential,
  ), "an error shows the credential");
  return String(error.reason);
}

/** Joins the texts of events of one kind. */
function saidIn(events: readonly CompletionEvent[]): Readonly<Record<string, string>> {
  const said: Record<string, string> = {};
  for (const event of events) {
    const key = "index" in event ? `${event.type} ${event.index}` : event.type;
    said[key] = (said[key] ?? "") + textOf(event);
  }
  return said;
}

function textOf(event: CompletionEvent): string {
  if ("text" in event) return event.text;
  return event.type === "tool-call-delta" ? event.arguments : JSON.stringify(event);
}

/** One in this many streams is read in pieces, too. */
const piecesEvery = 4;

function runStream(dialect: Dialect, input: Buffer): Outcome {
  const whole = readStream(dialect, input, [Number.POSITIVE_INFINITY]);
  // Bytes that are not UTF-8 fail with the read they are in, so the text before them may be missing.
  if (input.length % piecesEvery === 0 && isUtf8(input))
    for (const sizes of [[1], [7, 1, 64]]) {
      const pieces = readStream(dialect, input, sizes);
      require(isDeepStrictEqual(pieces, whole), "a stream read in pieces differs");
    }
  return { code: whole.failure ?? accepted.code };
}

/** A head of a request as text. Null if it isn't one. */
export interface RequestHead {
  readonly method: string;
  readonly path: string;
  readonly headers: readonly (readonly [string, string])[];
  readonly body: Buffer;
}

/** Reads a head leniently: whatever a server may pass on. */
export function readHead(input: Buffer): RequestHead {
  const end = input.indexOf("\r\n\r\n");
  const text = input.toString("latin1", 0, end === -1 ? input.length : end);
  const [first = "", ...lines] = text.split("\r\n");
  const space = first.indexOf(" ");
  return {
    method: first.slice(0, Math.max(0, space)),
    path: first.slice(space + 1),
    headers: lines.flatMap((line) => {
      const colon = line.indexOf(":");
      return colon < 1 ? [] : [[line.slice(0, colon), line.slice(colon + 1).trim()] as const];
    }),
    body: end === -1 ? Buffer.alloc(0) : input.subarray(end + 4),
  };
}

class HeadHeaders implements RequestHeaders {
  readonly #values = new Map<string, string>();

  constructor(headers: RequestHead["headers"]) {
    for (const [name, value] of headers) {
      const key = name.toLowerCase();
      const before = this.#values.get(key);
      this.#values.set(key, before === undefined ? value : `${before}, ${value}`);
    }
  }

  get(name: string): string | null {
    return this.#values.get(name) ?? null;
  }

  [Symbol.iterator](): Iterator<readonly [string, string]> {
    return this.#values[Symbol.iterator]();
  }
}

const headCodes = ["request_too_large", "unsupported_media_type"] as const;
const routeCodes = ["not_found", "method_not_allowed"] as const;
const headerBytes = 2_048;
/** The routes after `/v1/` with their methods, as the documentation lists them. */
const routes: readonly (readonly [path: RegExp, methods: RegExp])[] = [
  [/^(?:chat\/completions|responses|messages(?:\/count_tokens)?|embeddings)$/, /^POST$/],
  [/^responses\/compact$/, /^POST$/],
  [/^responses\/[^/]+$/, /^(?:GET|DELETE)$/],
  [/^responses\/[^/]+\/input_items$/, /^GET$/],
  [/^responses\/[^/]+\/cancel$/, /^POST$/],
  [/^(?:key|models(?:\/.+)?)$/, /^GET$/],
];
/** Characters that a URL parser changes. */
const rewritten = /[^!-~]|[%"<>\\^`{|}]/;

function runHead(input: Buffer): Outcome {
  const { method, path, headers: lines } = readHead(input);
  const headers = new HeadHeaders(lines);
  const token = bearerToken(headers);
  require(token === null || /^[!-~]+$/.test(token), "a token has odd characters");
  const dispatched = pathAfterV1(path);
  const route = routes.find(([pattern]) => pattern.test(dispatched ?? ""));
  if (dispatched !== null) {
    require(!/(?:^|\/)\.{1,2}(?:\/|$)|\/\/|[;\\?#]/.test(dispatched), "a route is ambiguous");
    queryOf(path).get("limit");
    if (route !== undefined && !rewritten.test(path)) requireSameRoute(path, dispatched);
  }
  const expected = expectedOf(method, dispatched, route?.[1]);
  const found = foundBy(method, path);
  require(found === expected, `${method} ${path} is ${found}, not ${expected}`);
  try {
    const request = { headers, headerBytes: input.length };
    requireSmallHeaders(Object.assign(Object.create(null), request), headerBytes);
    requireJsonBody(headers);
  } catch (error) {
    return outcomeOf(error, headCodes);
  }
  return { code: dispatched === null && found === "not_found" ? "no route" : found };
}

/** How the router must answer: with an endpoint, or with the code of an error. */
function expectedOf(method: string, dispatched: string | null, methods?: RegExp): string {
  if (dispatched === null && method === "HEAD") return accepted.code;
  if (methods === undefined) return "not_found";
  return methods.test(method) ? accepted.code : "method_not_allowed";
}

/** How the router answers. */
function foundBy(method: string, url: string): string {
  try {
    endpointOf(Object.assign(Object.create(null), { method, url }));
    return accepted.code;
  } catch (error) {
    return outcomeOf(error, routeCodes).code;
  }
}

/** Another parser must find the same route, or a proxy's rule for one path would not hold for this one. */
function requireSameRoute(path: string, dispatched: string): void {
  if (!URL.canParse(path, "http://gateway.test")) return;
  const { pathname } = new URL(path, "http://gateway.test");
  require(pathname.endsWith(`/v1/${dispatched}`), "a URL parser finds another route");
}

export const wireSurfaces: readonly Surface[] = [
  {
    name: "streams",
    share: 15,
    enough: 200_000,
    grammar: streamGrammar,
    paths: [],
    codes: [
      accepted.code,
      "answer_cut",
      "invalid_event",
      "unknown_finish_reason",
      "upstream_error",
    ],
    run: (input) => runStream(openai, input),
  },
  {
    name: "anthropic-streams",
    share: 15,
    enough: 200_000,
    grammar: messagesStreamGrammar,
    paths: [],
    codes: [
      accepted.code,
      "answer_cut",
      "invalid_event",
      "unknown_finish_reason",
      "upstream_error",
    ],
    run: (input) => runStream(anthropic, input),
  },
  {
    name: "anthropic-wholes",
    share: 15,
    enough: 200_000,
    grammar: messagesWholeGrammar,
    paths: [],
    codes: [
      accepted.code,
      "answer_cut",
      "invalid_answer",
      "invalid_event",
      "not JSON",
      "unknown_finish_reason",
      "upstream_error",
    ],
    run: (input) =>
      runWholeAnswer(anthropic.createReader({ seed: "seed", secrets }), input, reasonOf),
  },
  {
    name: "heads",
    share: 39,
    enough: 200_000,
    grammar: headGrammar,
    paths: [],
    codes: [accepted.code, "no route", ...routeCodes, ...headCodes],
    run: runHead,
  },
];
