import { type CompletionEvent, type ProviderCall, ProviderError } from "@tollgate/core/provider";
import { type ScriptedUpstream, scriptedUpstream } from "@tollgate/testing";
import { onTestFinished } from "vitest";
import { type AiSdkOptions, aiSdk, type Connect } from "../src/index.ts";

export interface Outcome {
  readonly events: readonly CompletionEvent[];
  readonly thrown: unknown;
}

/** One call of a fresh provider: its events and its error. */
export async function callProvider(
  source: Parameters<typeof aiSdk>[0],
  call: Partial<ProviderCall> = {},
  options: AiSdkOptions = {},
): Promise<Outcome> {
  const provider = aiSdk(source, options);
  const events: CompletionEvent[] = [];
  try {
    for await (const batch of provider.complete(callOf(call))) events.push(...batch);
    return { events, thrown: null };
  } catch (thrown) {
    return { events, thrown };
  } finally {
    await provider.close();
  }
}

/** The same with a scripted upstream. */
export async function callUpstream(
  connect: (url: string) => Connect,
  script: Parameters<typeof scriptedUpstream>[0],
  call: Partial<ProviderCall> = {},
  options: AiSdkOptions = {},
): Promise<Outcome & { readonly upstream: ScriptedUpstream }> {
  const upstream = await startUpstream(script);
  const given = { apiKey: "sk-platform-secret", ...options };
  return { upstream, ...(await callProvider(connect(upstream.url), call, given)) };
}

/** An upstream that closes at the end of the test. */
export async function startUpstream(
  script: Parameters<typeof scriptedUpstream>[0],
): Promise<ScriptedUpstream> {
  const upstream = await scriptedUpstream(script);
  onTestFinished(() => upstream.close());
  return upstream;
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
export function saidBy(thrown: unknown): object {
  if (!(thrown instanceof ProviderError)) throw new Error("not a ProviderError", { cause: thrown });
  const { reason, delivery, status } = thrown;
  return { reason, delivery, status };
}

export const textOf = (events: readonly CompletionEvent[]): string =>
  events.map((event) => (event.type === "text-delta" ? event.text : "")).join("");

/** The head and the bytes of an answer with its length. */
export function answer(contentType: string, body: string | Uint8Array, status = 200): Buffer {
  const head = [
    `HTTP/1.1 ${status} Answer`,
    `content-type: ${contentType}`,
    `content-length: ${Buffer.byteLength(body)}`,
  ];
  return Buffer.concat([Buffer.from(`${head.join("\r\n")}\r\n\r\n`), Buffer.from(body)]);
}
