import {
  type CompletionEvent,
  type Provider,
  type ProviderCall,
  ProviderError,
} from "@tollgate/core/provider";
import { type ScriptedUpstream, scriptedUpstream } from "@tollgate/testing";
import { onTestFinished } from "vitest";
import type { CreateProvider, NativeAnswer } from "./fixtures.ts";

export const credential = "credential-of-the-contract";

/** A scripted upstream and a provider for it. Both are closed after the test. */
export async function connected(
  create: CreateProvider,
  script: Parameters<typeof scriptedUpstream>[0],
  connection: "platform" | "customer" = "platform",
): Promise<{ readonly upstream: ScriptedUpstream; readonly provider: Provider }> {
  const upstream = await scriptedUpstream(script);
  const provider = create({ url: upstream.url, connection, credential });
  onTestFinished(async () => {
    await provider.close();
    await upstream.close();
  });
  return { upstream, provider };
}

export function callOf(over: Partial<ProviderCall> = {}): ProviderCall {
  return {
    model: "vendor/model",
    upstreamName: "model",
    request: { messages: [{ role: "user", content: "Say it." }] },
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

/** Collects every event of a call, and the error it throws. */
export async function outcomeOf(
  provider: Provider,
  call: ProviderCall,
): Promise<{ readonly events: readonly CompletionEvent[]; readonly thrown: unknown }> {
  const events: CompletionEvent[] = [];
  try {
    for await (const batch of provider.complete(call)) events.push(...batch);
    return { events, thrown: null };
  } catch (thrown) {
    return { events, thrown };
  }
}

/** Returns the ProviderError of a call that must fail. */
export async function failureOf(provider: Provider, call: ProviderCall): Promise<ProviderError> {
  const { thrown } = await outcomeOf(provider, call);
  if (thrown instanceof ProviderError) return thrown;
  throw new Error("the call should have failed with a ProviderError", { cause: thrown });
}

/** The bytes of an HTTP answer, with its length or ended by closing the connection. */
export function httpAnswer(
  { status, contentType, body }: NativeAnswer,
  framing: "length" | "until-closed" = "length",
): Buffer {
  const length = framing === "length" ? [`content-length: ${Buffer.byteLength(body)}`] : [];
  const head = [
    `HTTP/1.1 ${status} Answer`,
    `content-type: ${contentType}`,
    ...length,
    ...(framing === "length" ? [] : ["connection: close"]),
  ];
  return Buffer.from(`${head.join("\r\n")}\r\n\r\n${body}`);
}
