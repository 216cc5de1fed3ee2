import { createGateway, type Gateway } from "@tollgate/core";
import { definePolicy, forbid, permit } from "@tollgate/core/policy";
import type { Clock, EmbeddingCall, Provider } from "@tollgate/core/provider";
import type { Store } from "@tollgate/core/store";
import { memoryStore } from "@tollgate/store-memory";
import { checkDump, checkQuiet, countingIds, dumpStore } from "@tollgate/testing";
import { pathAfterV1 } from "../../../core/src/http/path-after-v1.ts";
import { anthropicDialect } from "../../../provider-anthropic/src/anthropic.ts";
import { type Upstream, UpstreamAnswer } from "../../../provider-http/src/call.ts";
import { embed } from "../../../provider-http/src/http-provider.ts";
import { embeddingDialect } from "../../../provider-openai/src/embeddings.ts";
import { openaiDialect } from "../../../provider-openai/src/openai-compatible.ts";
import { type ReceivedAnswer, receive, record } from "../histories/ask.ts";
import { smallLimits } from "./body-surfaces.ts";
import { messagesAnswerGrammar } from "./messages-grammar.ts";
import { accepted, type Outcome, require, type Surface } from "./surface.ts";
import { answerGrammar, requestGrammar, upstreamCredential } from "./wire-grammars.ts";
import { type RequestHead, readHead } from "./wire-surfaces.ts";

const organizationId = "acme";
const caller = { organizationId, userId: "jane", label: "test key" };
const start = Date.UTC(2026, 0, 1);

/** A clock whose timers run as soon as nothing else runs, so that no input has to wait. */
function hastyClock(): Clock {
  let passed = 0;
  return {
    now: () => Math.floor(start + passed),
    monotonic: () => passed,
    after(milliseconds, run) {
      // The gateway's own rounds are far away; a case never needs them.
      if (milliseconds > 5_000) return () => {};
      const timer = setTimeout(() => {
        passed += milliseconds;
        run();
      }, 1);
      return () => clearTimeout(timer);
    },
  };
}

/** An upstream in memory that answers with these bytes: a status, headers and a body. */
function poolThatAnswers(answer: Buffer): Upstream["pool"] {
  return {
    dispatch(_, handler) {
      const { status, headers, body } = answerIn(answer);
      let isPaused = false;
      let isAborted = false;
      let at = 0;
      const pieceBytes = 1 + (answer.length % 97) * 8;
      const send = (): void => {
        while (!isPaused && !isAborted && at < body.length) {
          handler.onResponseData?.(controller, body.subarray(at, at + pieceBytes));
          at += pieceBytes;
        }
        if (!isPaused && !isAborted && at >= body.length) {
          isAborted = true;
          handler.onResponseEnd?.(controller, {});
        }
      };
      const controller = {
        get aborted() {
          return isAborted;
        },
        get paused() {
          return isPaused;
        },
        reason: null,
        abort() {
          isAborted = true;
        },
        pause() {
          isPaused = true;
        },
        resume() {
          isPaused = false;
          queueMicrotask(send);
        },
      };
      handler.onRequestStart?.(controller, {});
      handler.onResponseStart?.(controller, status, headers);
      queueMicrotask(send);
      return true;
    },
  };
}

/** A first line that isn't a status counts as 200. */
function answerIn(answer: Buffer) {
  const end = answer.indexOf("\r\n\r\n");
  const [first = "", ...lines] = answer.toString("latin1", 0, Math.max(0, end)).split("\r\n");
  const status = /^[1-5]\d\d$/.test(first) ? Math.max(200, Number(first)) : 200;
  const headers: Record<string, string> = {};
  for (const line of lines) {
    const colon = line.indexOf(":");
    if (colon > 0) headers[line.slice(0, colon).toLowerCase()] = line.slice(colon + 1).trim();
  }
  return { status, headers, body: answer.subarray(end === -1 ? 0 : end + 4) };
}

/** The API of an upstream. */
type Api = Pick<Upstream, "path" | "dialect">;

const chatApi: Api = { path: "/v1/chat/completions", dialect: openaiDialect({}) };
const messagesApi: Api = { path: "/v1/messages", dialect: anthropicDialect({}) };

function providerOn(api: Api, pool: Upstream["pool"], clock: Clock): Provider {
  const upstream: Upstream = {
    ...api,
    pool,
    host: "upstream.test",
    credentialOf: () => upstreamCredential,
    traces: true,
    clock,
  };
  return {
    contract: 1,
    connection: "platform",
    models: { "tollgate/scripted": { input: "1", output: "2", maxOutputTokens: 100 } },
    open: true,
    vendor: null,
    problems: [],
    complete: (call) => new UpstreamAnswer(upstream, call),
    ...(api === chatApi && {
      embed: (call: EmbeddingCall) => embed(upstream, { root: "/v1", how: embeddingDialect }, call),
    }),
    close: async () => {},
  };
}

const policy = definePolicy({
  rules: [
    permit("all", {}, { fallbacks: ["spare/tollgate/scripted"] }),
    forbid("not-this-one", { model: "*/*/forbidden" }),
  ],
});

/** A gateway with one key, for one case. */
interface World {
  readonly gateway: Gateway;
  readonly store: Store;
  readonly secret: string;
  readonly clock: Clock;
}

async function openWorld(answer: Buffer, api: Api): Promise<World> {
  const clock = hastyClock();
  const store = memoryStore();
  const provider = providerOn(api, poolThatAnswers(answer), clock);
  const gateway = createGateway({
    store,
    clock,
    policy,
    ids: countingIds(1),
    limits: smallLimits,
    maintenance: false,
    retries: { max: 1 },
    budgets: [
      { id: "money", limit: { usd: 100 }, period: "total" },
      { id: "each", scope: { each: "key" }, limit: { requests: 10 }, period: "day" },
    ],
    rateLimits: [{ id: "parallel", limit: { concurrentSteps: 4 } }],
    providers: { test: provider, spare: provider },
  });
  const { secret } = await gateway.keys.create(caller);
  return { gateway, store, secret, clock };
}

const maxCaseMs = 10_000;

/** Fails if the work doesn't end. */
async function within<Result>(work: Promise<Result>): Promise<Result> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => late.reject(new Error("no answer within 10 seconds")), maxCaseMs);
  return Promise.race([work, late.promise]).finally(() => clearTimeout(timer));
}

const governed = /^(?:chat\/completions|responses|messages|embeddings)$/;

/** Sends a request to a gateway whose upstream gives this answer, and checks all that must hold afterwards. */
async function runCase(
  head: RequestHead,
  answer: Buffer,
  api = chatApi,
): Promise<ReceivedAnswer | null> {
  const world = await openWorld(answer, api);
  const { gateway, store, clock, secret } = world;
  const request = requestOf(head, secret);
  if (request === null) {
    await gateway.close();
    return null;
  }
  const received = await within(gateway.fetch(request).then(receive));
  const route = pathAfterV1(request.url) ?? "";
  requireOneEnd(received);
  requireShape(received, route);
  requireNoSecret(received, secret);
  await within(gateway.close());
  const query = { organizations: [organizationId], at: clock.now(), activity: gateway.activity };
  const dump = await dumpStore(store, query);
  const problems = [...checkDump(dump), ...checkQuiet(dump)];
  require(problems.length === 0, problems.join("; "));
  const isGoverned = head.method === "POST" && governed.test(route);
  require(isGoverned || dump.steps.length === 0, "a request that reaches no provider has a Step");
  const isWhole = received.status === 200 && !received.body.includes('"error":{');
  if (isWhole && isGoverned)
    require(dump.steps.at(-1)?.outcome ===
      "completed", "a whole answer of a Step that is not completed");
  return received;
}

/** The request of a head; null if no server could pass it on. */
function requestOf({ method, path, headers, body }: RequestHead, secret: string): Request | null {
  try {
    const url = new URL(path, "http://gateway.test");
    const list = new Headers();
    for (const [name, value] of headers.filter(isHeader))
      list.append(
        name,
        /^(?:authorization|x-api-key)$/.test(name) ? value.replaceAll("SECRET", secret) : value,
      );
    const takesBody = method.toUpperCase() !== "GET" && method.toUpperCase() !== "HEAD";
    return new Request(url, {
      method,
      headers: list,
      ...(takesBody ? { body: Uint8Array.from(body) } : {}),
    });
  } catch {
    return null;
  }
}

/** Whether a server would pass a header on. */
function isHeader([name, value]: readonly [string, string]): boolean {
  return /^[\w!#$%&'*+.^`|~-]+$/.test(name) && !/[\0\r\n]/.test(value);
}

/** An answer has one end: a body, or a stream with exactly one terminal form. */
function requireOneEnd({ status, headers, body }: ReceivedAnswer): void {
  require(status >= 200 && status < 600, `the status is ${status}`);
  require(!body.includes("[broken off:"), "the answer broke off");
  const type = headers.find(([name]) => name === "content-type")?.[1] ?? "";
  if (!type.startsWith("text/event-stream")) {
    require(body === "" || isJson(body), "the body is not JSON");
    return;
  }
  const events = body.split("\n\n").filter((event) => event !== "" && !event.startsWith(":"));
  const values = events.map((event) => event.slice(event.indexOf("data: ") + "data: ".length));
  require(values.every((value) => value === "[DONE]" || isJson(value)), "an event is not JSON");
  const isChat = values.includes("[DONE]");
  const ends = isChat
    ? values.filter((value) => value === "[DONE]")
    : values.filter((value) =>
        /^\{"type":"(?:response\.(?:completed|incomplete|failed)|message_stop|error","error":\{"type)"/.test(
          value,
        ),
      );
  require(ends.length === 1, `a stream has ${ends.length} ends`);
  require(values.at(-1) === ends[0], "a stream goes on after its end");
  const errors = values.filter((value) => value.startsWith('{"error":{'));
  const finishes = values.filter((value) => /"finish_reason":"/.test(value));
  if (isChat)
    require(errors.length + Math.min(1, finishes.length) ===
      1, "a chat stream has no single terminal form");
}

/** Errors have Anthropic's shape on the paths of its API alone, and a whole answer is the one of its route. */
function requireShape({ status, body }: ReceivedAnswer, route: string): void {
  if (body === "" || !isJson(body)) return;
  const { type, object, input_tokens } = record(JSON.parse(body));
  if (status >= 400)
    require((type === "error") ===
      /^messages(?:\/|$)/.test(route), "an error has another API's shape");
  else if (route === "key") require(object === "key", "the answer is not the key");
  else if (route === "embeddings") require(object === "list", "the answer is not a list");
  else if (route === "messages") require(type === "message", "the answer is not a message");
  else if (route === "messages/count_tokens")
    require(Number.isSafeInteger(input_tokens) &&
      Number(input_tokens) > 0, "no tokens are counted");
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** The caller's secret appears nowhere, and the upstream's credential in no error and no header. */
function requireNoSecret({ headers, body }: ReceivedAnswer, secret: string): void {
  const head = JSON.stringify(headers);
  require(!head.includes(secret) && !body.includes(secret), "an answer shows the caller's secret");
  require(!head.includes(upstreamCredential), "a header shows the upstream's credential");
  for (const [error] of body.matchAll(/"error":\{[^}]*\}/g))
    require(!error.includes(upstreamCredential), "an error shows the upstream's credential");
}

function codeOf({ status, body }: ReceivedAnswer): string {
  const type = /^(?:\{|event: error\ndata: \{)"type":"error","error":\{"type":"([a-z_]+)"/m.exec(
    body,
  )?.[1];
  if (type !== undefined) return status === 200 ? `${type} in a stream` : type;
  if (status === 200) {
    const code = /"error":\{[^}]*"code":"([a-z_]+)"/.exec(body)?.[1];
    return code === undefined ? accepted.code : `${code} in a stream`;
  }
  const code = body === "" ? null : record(record(JSON.parse(body))["error"])["code"];
  return typeof code === "string" ? code : `status ${status}`;
}

const good = Buffer.from(
  '200\r\ncontent-type: application/json\r\n\r\n{"id":"up","choices":[{"index":0,"message":{"role":"assistant","content":"Hello"},"finish_reason":"stop"}],"usage":{"prompt_tokens":10,"completion_tokens":5}}',
);
const goodVector = Buffer.from(
  '200\r\ncontent-type: application/json\r\n\r\n{"data":[{"index":0,"embedding":[0.5,-1]}],"usage":{"prompt_tokens":10,"total_tokens":10}}',
);
const goodStream = Buffer.from(
  '200\r\ncontent-type: text/event-stream\r\n\r\ndata: {"choices":[{"index":0,"delta":{"content":"Hello"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n',
);

async function runRequest(input: Buffer): Promise<Outcome> {
  const head = readHead(input);
  const whole = head.path.includes("embeddings") ? goodVector : good;
  const received = await runCase(head, head.body.includes('"stream":true') ? goodStream : whole);
  if (received === null) return { code: "no request" };
  require(received.status < 500 ||
    received.status === 502, `bad input got ${received.status} ${received.body}`);
  const code = codeOf(received);
  require(!/internal_error|evidence_unavailable/.test(code), `bad input got ${code}`);
  return { code };
}

const tool = { name: "get_weather" };
const messages = [{ role: "user", content: "Hello" }];
const conversations: Readonly<Record<string, object>> = {
  "chat/completions": { messages, tools: [{ type: "function", function: tool }] },
  responses: { input: "Hello", tools: [{ type: "function", ...tool }] },
  messages: { messages, max_tokens: 64, tools: [{ ...tool, input_schema: { type: "object" } }] },
};

const forms: readonly (readonly [path: string, fields: object])[] = [
  ...Object.entries(conversations).flatMap(([path, fields]) =>
    [true, false].map((stream) => [path, { ...fields, stream }] as const),
  ),
  ["embeddings", { input: "Hello" }],
];

const requests = forms.map(
  ([path, fields]): RequestHead => ({
    method: "POST",
    path: `/v1/${path}`,
    headers: [
      ["authorization", "Bearer SECRET"],
      ["content-type", "application/json"],
    ],
    body: Buffer.from(JSON.stringify({ model: "test/tollgate/scripted", ...fields })),
  }),
);

/** Answers every endpoint, streamed and plain in turn. Vectors are asked for, so that some of them are whole. */
function runAnswer(input: Buffer): Promise<Outcome> {
  const last = requests.length - 1;
  const at = input.includes('"embedding"') ? last : input.length % requests.length;
  return answerWith(input, requests[at], chatApi);
}

/** Answers every endpoint that holds conversations: the Messages API has no embeddings. */
function runMessagesAnswer(input: Buffer): Promise<Outcome> {
  return answerWith(input, requests[input.length % (requests.length - 1)], messagesApi);
}

async function answerWith(
  input: Buffer,
  request: RequestHead | undefined,
  api: Api,
): Promise<Outcome> {
  if (request === undefined) throw new Error("Unknown request.");
  const received = await runCase(request, input, api);
  if (received === null) throw new Error("The request of an honest client is invalid.");
  const code = codeOf(received);
  require(!/internal_error|evidence_unavailable/.test(
    code,
  ), `a bad upstream led to ${code}: ${received.body}`);
  return { code };
}

/** Codes that the grammar of requests leads to. */
const requestCodes = [
  accepted.code,
  "no request",
  "missing_api_key",
  "invalid_api_key",
  "invalid_json",
  "invalid_type",
  "invalid_value",
  "invalid_data_class",
  "missing_required_parameter",
  "unknown_parameter",
  "unsupported_parameter",
  "unsupported_value",
  "model_not_found",
  "not_found",
  "method_not_allowed",
  "response_not_found",
  "previous_response_not_found",
  "session_not_found",
  "item_not_found",
  "policy_denied",
  "price_unknown",
  "request_too_large",
  "unsupported_media_type",
  "authentication_error",
  "invalid_request_error",
  "not_found_error",
  "permission_error",
];

/** Codes that an upstream's answer leads to. */
const answerCodes = [
  accepted.code,
  "upstream_error",
  "upstream_error in a stream",
  "api_error",
  "api_error in a stream",
  "invalid_request_error",
  "rate_limit_error",
  "not_found_error",
  "rate_limit_exceeded",
  "upstream_rejected",
  "model_not_found",
  "context_length_exceeded",
];

export const gatewaySurfaces: readonly Surface[] = [
  {
    name: "requests",
    share: 0.2,
    enough: 20_000,
    grammar: requestGrammar,
    paths: [],
    codes: requestCodes,
    run: runRequest,
  },
  {
    name: "answers",
    share: 0.2,
    enough: 20_000,
    grammar: answerGrammar,
    paths: [],
    codes: [...answerCodes, "content_filter"],
    run: runAnswer,
  },
  {
    name: "anthropic-answers",
    share: 0.2,
    enough: 20_000,
    grammar: messagesAnswerGrammar,
    paths: [],
    codes: [...answerCodes, "overloaded_error", "server_error in a stream", "timeout_error"],
    run: runMessagesAnswer,
  },
];
