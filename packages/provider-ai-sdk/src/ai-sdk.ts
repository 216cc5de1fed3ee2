import {
  type CompletionEvent,
  modelsOf,
  type Provider,
  type ProviderCall,
  stateNeedsFor,
  systemClock,
} from "@tollgate/core/provider";
import { Agent } from "undici";
import { callDirectly } from "./call-directly.ts";
import { callGoverned } from "./call-governed.ts";
import { isModel, isProvider, readOptions, type Source } from "./configuration.ts";
import { failureOf } from "./failure-of.ts";
import { notSent } from "./failures.ts";
import { createOpenCalls } from "./open-calls.ts";
import type { AiSdkModel, AiSdkOptions, AiSdkProvider, Connect } from "./options.ts";
import { settingsOf } from "./settings.ts";

// A call's own signal ends every wait much earlier; this is for a caller that set no limit at all.
const maxSilenceMs = 3_600_000;
const connectMs = 10_000;
const maxConnections = 4_096;

/**
 * A provider for any language model of the AI SDK, in one of two forms.
 *
 * `aiSdk(({ fetch, credential }) => createAnthropic({ apiKey: credential, fetch }), { apiKey })` is the full form: the
 * function is asked before every call, and everything leaves by the `fetch` it is given. One request per call, no
 * redirects, no compressed answers, bounds on bytes, the record of the host and of the body's SHA-256, and
 * customer-owned connections all hold.
 *
 * `aiSdk(createAnthropic({ apiKey }))` and `aiSdk(languageModel)` are the short form: the AI SDK sends as it likes. The
 * record then has the name of the AI SDK's provider as host and the SHA-256 of the call's options as JSON, a
 * language model answers to its own name only, and an answer is bounded by time and tokens alone.
 *
 * Wrong options are listed in `problems`, which `createGateway` refuses; a call made nevertheless is a ProviderError.
 */
export function aiSdk(
  source: AiSdkModel | AiSdkProvider | Connect,
  input: AiSdkOptions = {},
): Provider {
  const { options: read, problems } = readOptions(source, input);
  const options = read ?? {};
  const { clock = systemClock } = options;
  const calls = createOpenCalls();
  const agent = openAgent();
  let closing: Promise<void> | undefined;

  async function* complete(
    call: ProviderCall,
  ): AsyncGenerator<readonly CompletionEvent[], void, undefined> {
    if (problems.length > 0)
      throw notSent("misconfigured", "The provider is not configured correctly.");
    const running = calls.begin(call.signal);
    let sent = false;
    try {
      const { request, stream } = call;
      const settings = settingsOf(request, options.providerOptions?.(request) ?? {});
      const modelCall = { messages: request.messages, settings, stream, signal: running.signal };
      const target = { name: call.upstreamName, modelCall, clock };
      const batches = connects(source)
        ? callGoverned(source, { ...target, options, call, agent })
        : callDirectly(source, target);
      for await (const batch of batches) {
        sent = true;
        yield batch;
      }
    } catch (thrown) {
      call.signal.throwIfAborted();
      running.signal.throwIfAborted();
      throw failureOf(thrown, { sent, now: clock.now() });
    } finally {
      running.end();
    }
  }

  return {
    contract: 1,
    connection: options.connection ?? "platform",
    ...modelsOf(options),
    ...(options.billing === undefined ? {} : { billing: options.billing }),
    problems,
    stateNeeds: (model) => stateNeedsFor(model, options),
    complete,
    close() {
      calls.close();
      closing ??= agent.destroy();
      return closing;
    },
  };
}

function connects(source: Source): source is Connect {
  return !isProvider(source) && !isModel(source);
}

function openAgent(): Agent {
  return new Agent({
    connections: maxConnections,
    connect: { timeout: connectMs },
    headersTimeout: maxSilenceMs,
    bodyTimeout: maxSilenceMs,
    allowH2: false,
  });
}
