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

/** What is about to leave. */
export interface Outgoing {
  readonly host: string;
  readonly bodySha256: string;
}

/** The one request that a call may make, held until it is released. */
export interface Exchange {
  /** What the AI SDK sends with. */
  readonly fetch: typeof globalThis.fetch;
  /** Resolves when a request is ready to leave. */
  readonly outgoing: Promise<Outgoing>;
  release(): void;
  /** The credentials that its request holds. */
  secrets(): readonly string[];
  /** What went wrong on the way, whatever the AI SDK made of it. */
  failure(): ProviderError | null;
}

export interface ExchangeOptions {
  readonly agent: Agent;
  readonly hosts: readonly string[] | undefined;
  readonly limits: ProviderCall["limits"];
  readonly stream: boolean;
  readonly signal: AbortSignal;
  readonly clock: Clock;
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
      throw fail(notSent("host_refused", "The provider is not configured for this host."));
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
  { agent, signal }: ExchangeOptions,
): Promise<Answered> {
  return send(url, {
    method,
    headers: { ...Object.fromEntries(headers), "accept-encoding": "identity" },
    ...(body.length === 0 ? {} : { body }),
    redirect: "manual",
    dispatcher: agent,
    signal,
  });
}

/** A good answer as the AI SDK may read it; every other is a failure that it need not interpret. */
async function answered(
  response: Answered,
  { limits, stream, clock, signal }: ExchangeOptions,
  fail: (failure: ProviderError) => ProviderError,
): Promise<Response> {
  const { status, headers, body } = response;
  if (status >= 300 && status < 400) {
    await body?.cancel();
    throw new ProviderError("The provider answered with a redirect, which is not followed.", {
      reason: "redirect_refused",
      delivery: "answered",
      status,
    });
  }
  const fields = Object.fromEntries(headers);
  if (status >= 400) {
    const answer = { status, headers: fields, body: await readErrorBody(body, clock, signal) };
    throw statusFailure(answer, clock.now());
  }
  const { "content-encoding": encoding = "identity", "content-type": type = "" } = fields;
  // None was asked for, and a few bytes of it can stand for gigabytes.
  if (encoding !== "identity") {
    await body?.cancel();
    throw invalidAnswer("unexpected_encoding", "The provider's answer is compressed.");
  }
  const measured =
    body?.pipeThrough(measuredBody({ contentType: type, stream }, limits, fail)) ?? null;
  return new Response(measured, { status, headers: fields });
}

// How long the body of an error is awaited after its status.
const gracePeriodMs = 2_000;
const maxBytes = 65_536;

/** The body of an error, as far as it comes soon and is short; text where it is no JSON. */
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
    // A broken body takes nothing from the status; only the caller's own abort goes on.
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
