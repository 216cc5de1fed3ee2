import {
  type Clock,
  type CompletionEvent,
  orAborted,
  type ProviderCall,
} from "@tollgate/core/provider";
import type { Agent } from "undici";
import { credentialOf } from "./credential.ts";
import { createExchange } from "./exchange.ts";
import { failureOf } from "./failure-of.ts";
import { notSent } from "./failures.ts";
import { languageModel } from "./language-model.ts";
import { callModel, type ModelCall } from "./model-call.ts";
import type { AiSdkOptions, Connect } from "./options.ts";
import { readAnswer } from "./read-answer.ts";

export interface GovernedCall {
  readonly name: string;
  readonly modelCall: ModelCall;
  readonly options: AiSdkOptions;
  readonly call: ProviderCall;
  readonly agent: Agent;
  readonly clock: Clock;
}

/** A call over a `fetch` of our own: the AI SDK is asked first, and its request waits until it is announced. */
export async function* callGoverned(
  connect: Connect,
  { name, modelCall, options, call, agent, clock }: GovernedCall,
): AsyncGenerator<readonly CompletionEvent[], void, undefined> {
  const { signal } = modelCall;
  const { limits, stream } = call;
  const credential = await credentialOf(options, call);
  const exchange = createExchange({ agent, hosts: options.hosts, limits, stream, signal, clock });
  const model = languageModel(connect({ fetch: exchange.fetch, credential }), name);
  const parts = callModel(model, modelCall);
  let sent = false;
  try {
    const outgoing = await orAborted(signal, () =>
      Promise.race([exchange.outgoing, parts.then(withoutFetch)]),
    );
    yield [{ type: "request-sent", ...outgoing }];
    signal.throwIfAborted();
    exchange.release();
    sent = true;
    yield* readAnswer(parts, { signal, clock });
  } catch (thrown) {
    signal.throwIfAborted();
    const failure = failureOf(exchange.failure() ?? thrown, { sent, now: clock.now() });
    throw failure.redact([...exchange.secrets(), ...(credential === null ? [] : [credential])]);
  } finally {
    // Given up before it was read: then its failure has nobody left to tell.
    parts.catch(() => {});
  }
}

function withoutFetch(): never {
  throw notSent("fetch_not_used", "The provider does not send with the fetch it was given.");
}
