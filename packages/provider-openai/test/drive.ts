import { type CompletionEvent, type ProviderCall, ProviderError } from "@tollgate/core/provider";
import { type ScriptedUpstream, scriptedUpstream } from "@tollgate/testing";
import { onTestFinished } from "vitest";
import { type OpenaiCompatibleOptions, openaiCompatible } from "../src/index.ts";

type Script = Parameters<typeof scriptedUpstream>[0];

/** A call of a fresh provider to a scripted upstream: its events, its error and the upstream. */
export async function callUpstream(
  script: Script,
  call: Partial<ProviderCall> = {},
  options: Partial<OpenaiCompatibleOptions> = {},
): Promise<Outcome & { readonly upstream: ScriptedUpstream }> {
  const upstream = await scriptedUpstream(script);
  onTestFinished(() => upstream.close());
  return { upstream, ...(await callProvider(`${upstream.url}/v1`, call, options)) };
}

export interface Outcome {
  readonly events: readonly CompletionEvent[];
  readonly thrown: unknown;
}

export async function callProvider(
  baseURL: string,
  call: Partial<ProviderCall> = {},
  options: Partial<OpenaiCompatibleOptions> = {},
): Promise<Outcome> {
  const provider = openaiCompatible({ baseURL, apiKey: "sk-platform-secret", ...options });
  const events: CompletionEvent[] = [];
  try {
    for await (const batch of provider.complete(callOf(call))) events.push(...batch);
    return { events, thrown: null };
  } catch (thrown) {
    return { events, thrown };
  } finally {
    onTestFinished(() => provider.close());
  }
}

export function callOf(over: Partial<ProviderCall> = {}): ProviderCall {
  return {
    model: "vendor/model",
    upstreamName: "model",
    request: { messages: [{ role: "user", content: "Hi" }] },
    stream: true,
    credential: null,
    signal: new AbortController().signal,
    limits: { eventBytes: 1_048_576, totalBytes: 67_108_864, bodyBytes: 4_194_304 },
    outputCap: 4_096,
    traceparent: null,
    connectWithin: 10_000,
    ...over,
  };
}

/** The details of a ProviderError, for comparison. */
export function said(thrown: unknown): object {
  if (!(thrown instanceof ProviderError)) throw new Error("not a ProviderError", { cause: thrown });
  const { reason, delivery, status } = thrown;
  return { reason, delivery, status };
}

export const kinds = (events: readonly CompletionEvent[]): readonly string[] =>
  events.map(({ type }) => type);

export const head = (...lines: readonly string[]): string =>
  `${["HTTP/1.1 200 OK", ...lines].join("\r\n")}\r\n\r\n`;
export const streamHead = head("content-type: text/event-stream", "transfer-encoding: chunked");
export const chunked = (text: string): string =>
  `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`;
export const data = (chunk: object): string => `data: ${JSON.stringify(chunk)}\n\n`;
export const textChunk = data({ choices: [{ delta: { content: "Half" } }] });
export const finishChunk = data({ choices: [{ delta: {}, finish_reason: "stop" }] });
export const usageChunk = data({ choices: [], usage: { prompt_tokens: 1, completion_tokens: 2 } });
export const done = "data: [DONE]\n\n";
