import { hash } from "node:crypto";
import type { ReadableStream } from "node:stream/web";
import {
  type Clock,
  type ProviderCall,
  ProviderError,
  secretHeaders,
} from "@tollgate/core/provider";
import { type Agent, type Response as Answered, fetch as send } from "undici";
import { invalidAnswer, notSent, transportFailure } from "./failures.ts";
import { measuredBody } from "./measured-body.ts";
import { statusFailure } from "./upstream-error.ts";

/** The record of a request that is about to be sent. */
export interface Outgoing {
  readonly host: string;
  readonly bodySha256: string;
}

/** The only request that a call may send. It waits until it is released. */
export interface Exchange {
  /** The `fetch` for the AI SDK. */
  readonly fetch: typeof globalThis.fetch;
  /** Resolves when a request is ready to be sent. */
  readonly outgoing: Promise<Outgoing>;
  release(): void;
  /** The credentials in the request. */
  secrets(): readonly string[];
  /** The original failure, however the AI SDK wrapped it. */
  failure(): ProviderError | null;
}

export interface ExchangeOptions {
  readonly agent: Agent;
  readonly hosts: readonly string[] | undefined;
  readonly limits: ProviderCall["limits"];
  readonly stream: boolean;
  readonly signal: AbortSignal;
  readonly clock: Clock;
  /** The header of the call; null for none. */
  readonly traceparent: string | null;
}

export function createExchange(options: ExchangeOptions): Exchange {
  const { signal, hosts } = options;
  const outgoing = Promise.withResolvers<Outgoing>();
  const released = Promise.withResolvers<void>();
  let asked = false;
  let failed: ProviderError | null = null;
  let secrets: readonly string[] = [];
  const fail = (failure: ProviderError): ProviderError => {
    failed ??= failure;
    return failure;
  };

  async function governedFetch(request: Request): Promise<Response> {
    if (asked) throw fail(invalidAnswer("second_request", "The provider made a second request."));
    asked = true;
    const { protocol, host, searchParams } = new URL(request.url);
    secrets = secretHeaders(Object.fromEntries([...request.headers, ...searchParams]));
    if (!/^https?:$/.test(protocol) || (hosts !== undefined && !hosts.includes(host)))
      throw fail(notSent("host_refused", "The provider isn't configured for this host."));
    const body = Buffer.from(await request.arrayBuffer());
    outgoing.resolve({ host, bodySha256: hash("sha256", body) });
    await released.promise;
    signal.throwIfAborted();
    try {
      return await answered(await dispatch(request, body, options), options, fail);
    } catch (thrown) {
      const known = thrown instanceof ProviderError ? thrown : transportFailure(thrown);
      if (known) throw fail(known);
      throw thrown;
    }
  }

  return {
    fetch: (input, init) => governedFetch(new Request(input, init)),
    outgoing: outgoing.promise,
    release: released.resolve,
    secrets: () => secrets,
    failure: () => failed,
  };
}

function dispatch(
  { url, method, headers }: Request,
  body: Buffer,
  { agent, signal, traceparent }: ExchangeOptions,
): Promise<Answered> {
  return send(url, {
    method,
    headers: {
      ...Object.fromEntries(headers),
      "accept-encoding": "identity",
      ...(traceparent === null ? {} : { traceparent }),
    },
    ...(body.length === 0 ? {} : { body }),
    redirect: "manual",
    dispatcher: agent,
    signal,
  });
}

/** Returns a successful answer for the AI SDK. Throws for any other answer. */
async function answered(
  response: Answered,
  { limits, stream, clock, signal }: ExchangeOptions,
  fail: (failure: ProviderError) => ProviderError,
): Promise<Response> {
  const { status, headers, body } = response;
  if (status >= 300 && status < 400) {
    await body?.cancel();
    throw new ProviderError(
      "The provider answered with a redirect. Tollgate doesn't follow redirects.",
      {
        reason: "redirect_refused",
        delivery: "answered",
        status,
      },
    );
  }
  const fields = Object.fromEntries(headers);
  if (status >= 400) {
    const answer = { status, headers: fields, body: await readErrorBody(body, clock, signal) };
    throw statusFailure(answer, clock.now());
  }
  const { "content-encoding": encoding = "identity", "content-type": type = "" } = fields;
  // Tollgate requests uncompressed answers: a few compressed bytes can expand to gigabytes.
  if (encoding !== "identity") {
    await body?.cancel();
    throw invalidAnswer("unexpected_encoding", "The provider's answer is compressed.");
  }
  const measured =
    body?.pipeThrough(measuredBody({ contentType: type, stream }, limits, fail)) ?? null;
  return new Response(measured, { status, headers: fields });
}

// How long to wait for the body of an error after its status.
const gracePeriodMs = 2_000;
const maxBytes = 65_536;

/** Reads the body of an error, if it is short and arrives soon: as JSON, or else as text. */
async function readErrorBody(
  body: ReadableStream<Uint8Array> | null,
  clock: Clock,
  signal: AbortSignal,
): Promise<unknown> {
  if (body === null) return undefined;
  const reader = body.getReader();
  const stop = (): void => void reader.cancel().catch(() => {});
  const cancelGracePeriod = clock.after(gracePeriodMs, stop);
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  try {
    for (let read = await reader.read(); !read.done; read = await reader.read()) {
      chunks.push(read.value);
      bytes += read.value.length;
      if (bytes > maxBytes) return undefined;
    }
  } catch {
    // If the body breaks off, the status is still the failure. Only the caller's abort is rethrown.
    signal.throwIfAborted();
  } finally {
    cancelGracePeriod();
    stop();
  }
  const text = Buffer.concat(chunks).toString("utf8");
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
