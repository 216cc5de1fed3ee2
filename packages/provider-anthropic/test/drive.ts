import { readFileSync } from "node:fs";
import { type CompletionEvent, type ProviderCall, ProviderError } from "@tollgate/core/provider";
import { type ScriptedUpstream, scriptedUpstream } from "@tollgate/testing";
import { onTestFinished } from "vitest";
import { readBytesOf } from "../../provider-http/test/read-bytes.ts";
import { anthropicDialect } from "../src/anthropic.ts";
import { type AnthropicProviderOptions, anthropic } from "../src/index.ts";

/** The text of a written answer. */
export function fixture(name: string): string {
  return readFileSync(new URL(`fixtures/${name}`, import.meta.url), "utf8");
}

const dialect = anthropicDialect({});

export const readBytes = readBytesOf(dialect);

/** Reads an answer in one body. */
export function readWhole(body: string): readonly CompletionEvent[] {
  const answer = dialect.createReader({ seed: "seed", secrets: [] });
  const events: CompletionEvent[] = [];
  answer.addWhole(JSON.parse(body), events, body);
  answer.finish(events);
  return events;
}

/** A call of a fresh provider to a scripted upstream: its events, its error and the upstream. */
export async function callUpstream(
  script: Parameters<typeof scriptedUpstream>[0],
  call: Partial<ProviderCall> = {},
  options: Partial<AnthropicProviderOptions> = {},
): Promise<Outcome & { readonly upstream: ScriptedUpstream }> {
  const upstream = await scriptedUpstream(script);
  onTestFinished(() => upstream.close());
  const provider = anthropic({
    baseURL: `${upstream.url}/v1`,
    apiKey: "sk-secret-key",
    ...options,
  });
  onTestFinished(() => provider.close());
  const events: CompletionEvent[] = [];
  try {
    for await (const batch of provider.complete(callOf(call))) events.push(...batch);
    return { upstream, events, thrown: null };
  } catch (thrown) {
    return { upstream, events, thrown };
  }
}

interface Outcome {
  readonly events: readonly CompletionEvent[];
  readonly thrown: unknown;
}

export function callOf(over: Partial<ProviderCall> = {}): ProviderCall {
  return {
    model: "anthropic/claude-sonnet-4-5",
    upstreamName: "claude-sonnet-4-5",
    request: { messages: [{ role: "user", content: "Hi" }] },
    outputCap: 4_096,
    stream: true,
    credential: null,
    signal: new AbortController().signal,
    limits: { eventBytes: 1_048_576, totalBytes: 67_108_864, bodyBytes: 4_194_304 },
    traceparent: null,
    connectWithin: 10_000,
    ...over,
  };
}

/** The details of a ProviderError, for comparison. */
export function said(thrown: unknown): object {
  if (!(thrown instanceof ProviderError)) throw new Error("not a ProviderError", { cause: thrown });
  const { reason, delivery, status, code, retryAfterMs } = thrown;
  return { reason, delivery, status, code, retryAfterMs };
}

/** An answer with its head. */
export function answer(
  status: number,
  body: string,
  headers: readonly string[] = [],
  type = "application/json",
): string {
  const head = [`HTTP/1.1 ${status} X`, `content-type: ${type}`, ...headers].join("\r\n");
  return `${head}\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
}

/** One event of a stream. */
export const event = (
  data: { readonly type: string } & Readonly<Record<string, unknown>>,
): string => `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`;
