import { GatewayError } from "@tollgate/core";
import { asReplayed, isErrorCode } from "@tollgate/core/administration";
import { read, type Schema, tryRead, z } from "@tollgate/core/schemas";
import { type Operation, type Route, readParameters } from "./operation.ts";
import { encodeQuery, headerParameters } from "./parameters.ts";
import { tagIn } from "./present.ts";

/** Where the admin API is, and how to sign in to it. */
export interface RemoteOptions {
  /** Where the admin API is mounted, without `/admin/v1`: `https://gateway.example/ops`. */
  readonly url: string;
  /** Sent as `Authorization: Bearer …`, or a function that returns it for each request. */
  readonly token: string | (() => string | Promise<string>);
  /** Whether the token may go over plain `http` to another machine, where others can read it on the way. Default: false. */
  readonly insecure?: boolean;
  /** Sends the requests. Default: the global `fetch`. */
  readonly fetch?: (request: Request) => Promise<Response>;
  /**
   * How long an answer may take, in milliseconds. An export may take longer once it has begun. Default: 300,000 for
   * maintenance, which may read every record, and 60,000 for anything else.
   */
  readonly timeout?: number;
}

/** Sends operations over HTTP. */
export interface HttpClient {
  /** Checks the parameters, sends them, and returns the answer. */
  send<Output>(operation: Operation<Output>, parameters: object): Promise<Output>;
  /** Sends an operation that answers with a file. */
  download(operation: Route, parameters: object): ReadableStream<Uint8Array>;
}

const maxAnswerBytes = 268_435_456;
const defaultTimeoutMs = 60_000;
/** As long as Node's own `fetch` waits for an answer to begin. */
const maintenanceTimeoutMs = 300_000;

const optionsSchema = z.looseObject({
  url: z.string(),
  token: z.custom<RemoteOptions["token"]>(
    (token) => (typeof token === "string" && token !== "") || typeof token === "function",
    { error: "must be a token, or a function that returns one" },
  ),
});

/** @throws GatewayError `invalid_configuration` for a URL that isn't `https` or of this machine, or without a token */
export function createHttpClient(options: RemoteOptions): HttpClient {
  const { url, token } = read(optionsSchema, options, { code: "invalid_configuration" });
  const base = baseOf(url, options.insecure ?? false);
  const { fetch: fetchWith = fetch, timeout } = options;
  const timeoutOf = ({ isMaintenance }: Route): number =>
    timeout ?? (isMaintenance ? maintenanceTimeoutMs : defaultTimeoutMs);

  async function request(
    route: Route,
    parameters: object,
    signal = AbortSignal.timeout(timeoutOf(route)),
  ): Promise<Response> {
    const { path, rest, headers } = addressOf(route, parameters);
    const isPost = route.method === "POST";
    const query = isPost ? "" : `?${encodeQuery(rest)}`;
    const bearer = typeof token === "string" ? token : await token();
    const sent = new Request(`${base}/admin/v1${path}${query}`, {
      method: route.method,
      headers: {
        authorization: `Bearer ${bearer}`,
        ...(isPost ? { "content-type": "application/json" } : {}),
        ...headers,
      },
      redirect: "error",
      signal,
      ...(isPost ? { body: JSON.stringify(rest) } : {}),
    });
    const response = await fetchWith(sent).catch(cannotReach);
    if (!response.ok) throw await errorOf(response);
    return response;
  }

  /** Sends an operation that answers with a file, which may take longer than the timeout once it has begun. */
  async function begin(route: Route, parameters: object): Promise<Response> {
    const beginning = new AbortController();
    const late = new DOMException("The answer didn't begin in time.", "TimeoutError");
    const timer = setTimeout(() => beginning.abort(late), timeoutOf(route));
    try {
      const response = await request(route, parameters, beginning.signal);
      if (isFile(response)) return response;
      beginning.abort();
      throw noAdminApi("something other than a file");
    } finally {
      clearTimeout(timer);
    }
  }

  /** Reads the record that an operation replaces, unless the caller has read it. */
  async function requiredTag(route: Route, parameters: object): Promise<object> {
    if (route.replaces === null || "ifMatch" in parameters) return {};
    const named = Object.entries(parameters).filter(([name]) =>
      /^(?:organizationId|id)$/.test(name),
    );
    const read = { ...route, method: "GET", path: route.replaces } as const;
    const response = await request(read, Object.fromEntries(named));
    // A body that a host's fetch has copied is cancelled only with its copy, so waiting for that could take forever.
    await textOf(response).catch(cannotReach);
    return { ifMatch: tagIn(response.headers.get("etag") ?? "") };
  }

  return {
    async send(operation, parameters) {
      const { output } = operation;
      if (output === "file") throw new TypeError("download() reads files.");
      readParameters(z.strictObject(operation.input), parameters);
      const seen = await requiredTag(operation, parameters);
      const response = await request(operation, { ...seen, ...parameters });
      const answer = parsed(output, await textOf(response).catch(cannotReach));
      if (response.headers.has("idempotency-replayed")) asReplayed(Object(answer));
      return answer;
    },
    download(operation, parameters) {
      readParameters(z.strictObject(operation.input), parameters);
      let reader: ReadableStreamDefaultReader<Uint8Array> | undefined;
      return new ReadableStream<Uint8Array>(
        {
          async pull(controller) {
            reader ??= (await begin(operation, parameters)).body?.getReader();
            const read = await reader?.read().catch(cannotReach);
            const { done, value } = read ?? { done: true as const };
            if (done) controller.close();
            else controller.enqueue(value);
          },
          cancel: (reason) => reader?.cancel(reason),
        },
        // Reads nothing before the consumer asks for it.
        { highWaterMark: 0 },
      );
    },
  };
}

function baseOf(url: string, insecure: boolean): string {
  const parsed = URL.canParse(url) ? new URL(url) : null;
  const isHttp = parsed?.protocol === "https:" || parsed?.protocol === "http:";
  if (parsed === null || !isHttp || parsed.search !== "" || parsed.username !== "")
    throw invalidUrl(
      "must be where the admin API is mounted, such as https://gateway.example/ops.",
    );
  if (parsed.protocol === "http:" && !insecure && !isLoopback(parsed.hostname))
    throw invalidUrl(
      "must be https: over http, others can read the token on the way. If you trust the network, allow it with `insecure` (--insecure).",
    );
  return `${parsed.origin}${parsed.pathname.replace(/\/$/, "")}`;
}

/** Whether a name or an address is of this machine. URLs write every form of an IPv4 address as four numbers. */
function isLoopback(host: string): boolean {
  return (
    host === "localhost" ||
    host.endsWith(".localhost") ||
    host === "[::1]" ||
    /^127(?:\.\d{1,3}){3}$/.test(host)
  );
}

function invalidUrl(rule: string): GatewayError {
  return new GatewayError("invalid_configuration", `\`url\` ${rule}`, { param: "url" });
}

/** The path with its parameters filled in, the headers, and the other parameters. */
function addressOf(route: Route, parameters: object) {
  const rest = new Map<string, unknown>(Object.entries(parameters));
  const path = route.path.replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = String(rest.get(name));
    rest.delete(name);
    // A URL drops such a segment, however it is spelled, and the request would reach another operation.
    if (/^\.{0,2}$/.test(value))
      throw new GatewayError("invalid_argument", `\`${name}\` can't be sent in a path.`, {
        param: name,
      });
    return encodeURIComponent(value);
  });
  const headers = headerParameters.flatMap(({ name, header }) => {
    const value = rest.get(name);
    rest.delete(name);
    if (typeof value !== "string") return [];
    return [[header, name === "ifMatch" ? `"${value}"` : value] as const];
  });
  return { path, rest: Object.fromEntries(rest), headers: Object.fromEntries(headers) };
}

async function textOf(response: Response): Promise<string> {
  const reader = response.body?.getReader();
  const decoder = new TextDecoder();
  let [text, bytes] = ["", 0];
  for (;;) {
    const { done, value } = (await reader?.read()) ?? { done: true as const };
    if (done) return text + decoder.decode();
    bytes += value.length;
    if (bytes > maxAnswerBytes) {
      void reader?.cancel().catch(() => {});
      throw new Error("The answer is too large.");
    }
    text += decoder.decode(value, { stream: true });
  }
}

function parsed<Output>(schema: Schema<Output>, text: string): Output {
  const sent = jsonOf(text);
  const { value, problems } = tryRead(schema, sent);
  if (problems.length === 0 && value !== null) {
    orderAs(sent, value);
    return value;
  }
  throw noAdminApi(sent === undefined ? "something other than JSON" : "another form of record");
}

/** Gives a record the order of its members that it has in process. Its schema may list them in another one. */
function orderAs(sent: unknown, record: unknown): void {
  if (typeof sent !== "object" || typeof record !== "object" || sent === null || record === null)
    return;
  for (const [name, member] of Object.entries(sent)) {
    if (!Object.hasOwn(record, name)) continue;
    const value: unknown = Reflect.get(record, name);
    if (!Array.isArray(record)) {
      Reflect.deleteProperty(record, name);
      Reflect.set(record, name, value);
    }
    orderAs(member, value);
  }
}

/** A proxy may answer with a page of its own, such as its sign-in. */
function isFile({ headers }: Response): boolean {
  return /^(?:text\/csv|application\/x-ndjson)(?:;|$)/.test(headers.get("content-type") ?? "");
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const errorSchema = z.looseObject({
  error: z.looseObject({
    message: z.string(),
    param: z.nullable(z.string()),
    code: z.nullable(z.string()),
  }),
});

/** The error that the admin API answered with, or what answered in its place. */
async function errorOf(response: Response): Promise<GatewayError> {
  const { value } = tryRead(errorSchema, jsonOf(await textOf(response).catch(cannotReach)));
  const { status } = response;
  const { code, message, param } = value?.error ?? {};
  const isKnown = message !== undefined && isErrorCode(code);
  // Servers and proxies bound the head of a request before the admin API sees it.
  if (!isKnown && (status === 414 || status === 431))
    return new GatewayError(
      "request_too_large",
      "The parameters are too long for a URL: name fewer of them.",
    );
  // A proxy answers so for an admin API that it can't reach, or that takes too long.
  if (!isKnown && status >= 500)
    return cannotReach(new Error(`something in its place answered with status ${status}`));
  // The gateway itself answers so where it has no admin API. An unknown record has another code.
  if (!isKnown || code === "not_found") return noAdminApi(`status ${status}`);
  return new GatewayError(code, message, { status, ...(param == null ? {} : { param }) });
}

function noAdminApi(answer: string): GatewayError {
  return new GatewayError(
    "administration_unavailable",
    `This URL isn't an admin API of this release: it answered with ${answer}. Check the URL, and use the same release on both sides.`,
  );
}

function cannotReach(thrown: unknown): never {
  throw new GatewayError(
    "administration_unavailable",
    "The admin API didn't answer. If this was a change, its outcome is unknown: read the record before you retry.",
    { cause: reasonOf(thrown) },
  );
}

/** `fetch` says only that it failed. Why is in its cause: one error, or one for each address of a name. */
function reasonOf(thrown: unknown): unknown {
  const cause = thrown instanceof TypeError ? (thrown.cause ?? thrown) : thrown;
  return cause instanceof AggregateError ? (cause.errors[0] ?? cause) : cause;
}
