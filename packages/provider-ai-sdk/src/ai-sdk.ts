import { hash } from "node:crypto";
import {
  APICallError,
  type EmbeddingModelV4CallOptions,
  InvalidArgumentError,
  InvalidPromptError,
  LoadAPIKeyError,
  LoadSettingError,
  NoSuchModelError,
  TooManyEmbeddingValuesForCallError,
  UnsupportedFunctionalityError,
} from "@ai-sdk/provider";
import {
  type Clock,
  type CompletionEvent,
  type EmbeddingCall,
  modelsOf,
  orAborted,
  type Provider,
  type ProviderCall,
  ProviderError,
  stateNeedsFor,
  systemClock,
  yieldToEventLoop,
} from "@tollgate/core/provider";
import { Agent } from "undici";
import { createAnswerReader } from "./answer-reader.ts";
import {
  isEmbeddingModel,
  isKnownVersion,
  isModel,
  isProvider,
  readOptions,
  type Source,
} from "./configuration.ts";
import {
  callEmbeddingModel,
  type EmbeddingResult,
  embeddingModel,
  embeddingOptions,
  mayEmbed,
  readEmbeddings,
} from "./embeddings.ts";
import { createExchange } from "./exchange.ts";
import { invalidAnswer, notSent, rejected, transportFailure } from "./failures.ts";
import { callModel, callOptions, type ModelCall, type Part } from "./model-call.ts";
import type { AiSdkModel, AiSdkOptions, AiSdkSource, Connect } from "./options.ts";
import { orderFor } from "./prompt.ts";
import { settingsOf } from "./settings.ts";
import { settingsFor } from "./thinking.ts";
import { statusFailure } from "./upstream-error.ts";

// A call's own signal ends it much earlier. This applies if the caller set no limit.
const maxSilenceMs = 3_600_000;
const connectMs = 10_000;
const maxConnections = 4_096;

/**
 * A provider for any language model and any embedding model of the AI SDK, in one of two forms.
 *
 * `aiSdk(({ fetch, credential }) => createAnthropic({ apiKey: credential, fetch }), { apiKey })` is the full form.
 * Tollgate calls the function before every call, and all traffic goes through its `fetch`. It guarantees one request per
 * call, no redirects, no compressed answers, limits in bytes, a record of the host and the body's SHA-256, and
 * customer-owned connections.
 *
 * `aiSdk(createAnthropic({ apiKey }))` and `aiSdk(model)` are the short form: the AI SDK sends the request itself.
 * The record then contains the name of the AI SDK's provider as host and the SHA-256 of the call's options as JSON. A
 * single model accepts only its own name, and answers are limited only by time and tokens.
 *
 * Invalid options are listed in `problems`, which `createGateway` rejects. A call with invalid options fails with a ProviderError.
 */
export function aiSdk(source: AiSdkSource | Connect, input: AiSdkOptions = {}): Provider {
  const { options: read, problems } = readOptions(source, input);
  const options = read ?? {};
  const { clock = systemClock } = options;
  const calls = createOpenCalls();
  const agent = openAgent();
  let closing: Promise<void> | undefined;

  /** Runs one call. `asking` says how, and throws for a request that the AI SDK has no form for. */
  async function* run<Answer>(
    call: SentCall,
    asking: (signal: AbortSignal) => Asking<Answer>,
  ): Events {
    if (problems.length > 0)
      throw notSent("misconfigured", "The provider is not configured correctly.");
    const running = calls.begin(call.signal);
    let sent = false;
    try {
      const { signal } = running;
      const target = { asking: asking(signal), signal, clock };
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

  function complete(call: ProviderCall): Events {
    return run(call, (signal) => {
      const { request, stream } = call;
      const settings = settingsOf(request, atOnce(options.providerOptions?.(request)) ?? {});
      return completing(call, { messages: request.messages, settings, stream, signal });
    });
  }

  function embed({ request, ...call }: EmbeddingCall): Events {
    return run({ ...call, stream: false }, (abortSignal) => {
      const own = atOnce(options.embeddingOptions?.(request));
      return embedding(call, { ...embeddingOptions(request, own), abortSignal });
    });
  }

  return {
    contract: 1,
    connection: options.connection ?? "platform",
    ...modelsOf(options),
    ...(options.billing === undefined ? {} : { billing: options.billing }),
    problems,
    stateNeeds: (model) => stateNeedsFor(model, options),
    complete,
    ...(mayEmbed(source) ? { embed } : {}),
    close() {
      calls.close();
      closing ??= agent.destroy();
      return closing;
    },
  };
}

/** The host's own options for a call. A promise of options would be ignored silently. */
function atOnce<Options>(own: Options): Options {
  if (!(own instanceof Promise)) return own;
  own.catch(() => {});
  throw notSent("misconfigured", "`providerOptions` and `embeddingOptions` can't be async.");
}

function connects(source: Source): source is Connect {
  return !isProvider(source) && !isModel(source) && !isEmbeddingModel(source);
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

type Events = AsyncGenerator<readonly CompletionEvent[], void, undefined>;

/** The members of a call that are the same for every kind of model. */
type SentCall = Omit<ProviderCall, "request" | "outputCap" | "continues">;

/** How one call asks a model, and reads its answer. */
interface Asking<Answer> {
  /** Finds the model. Throws if the source has none for the call. */
  readonly find: (source: AiSdkSource) => FoundModel<Answer>;
  readonly read: (answer: Promise<Answer>, options: ReadOptions) => Events;
}

interface FoundModel<Answer> {
  /** The AI SDK's name for the model's provider. */
  readonly provider: string;
  /** Returns the options of the call, for the digest of a request that the AI SDK sends itself. */
  readonly sent: () => object;
  readonly ask: () => Promise<Answer>;
}

function completing(
  { upstreamName: name, request }: ProviderCall,
  given: ModelCall,
): Asking<AsyncIterator<Part>> {
  return {
    read: readAnswer,
    find(source) {
      const model = languageModel(source, name);
      const { provider, specificationVersion } = model;
      // The older version has no reasoning effort.
      const isOlder = specificationVersion !== "v4";
      const named = { provider, name, isOlder, hasMessages: "messages" in source };
      const modelCall = {
        ...given,
        messages: orderFor(provider, given.messages),
        settings: settingsFor(named, given.settings, request),
      };
      const sent = (): object => {
        const { abortSignal: _, ...options } = callOptions(modelCall);
        return { model: name, stream: modelCall.stream, ...options };
      };
      return { provider, sent, ask: () => callModel(model, modelCall) };
    },
  };
}

function embedding(
  { upstreamName: name }: Pick<SentCall, "upstreamName">,
  options: EmbeddingModelV4CallOptions,
): Asking<EmbeddingResult> {
  return {
    read: readEmbeddings,
    find(source) {
      if (!safeName.test(name)) throw unknownModel();
      const model = embeddingModel(source, name);
      const { abortSignal: _, ...rest } = options;
      const sent = () => ({ model: name, ...rest });
      return { provider: model.provider, sent, ask: () => callEmbeddingModel(model, options) };
    },
  };
}

interface Target<Answer> {
  readonly asking: Asking<Answer>;
  readonly signal: AbortSignal;
  readonly clock: Clock;
}

interface GovernedCall<Answer> extends Target<Answer> {
  readonly options: AiSdkOptions;
  readonly call: SentCall;
  readonly agent: Agent;
}

/** Calls the AI SDK with its own `fetch`. Its request waits until `request-sent` has been recorded. */
async function* callGoverned<Answer>(
  connect: Connect,
  { asking, signal, options, call, agent, clock }: GovernedCall<Answer>,
): Events {
  const { limits, stream } = call;
  const credential = await credentialOf(options, call);
  const { hosts, trace } = options;
  const traceparent = trace === "send" ? call.traceparent : null;
  const exchange = createExchange({ agent, hosts, limits, stream, signal, clock, traceparent });
  const answer = asking.find(connect({ fetch: exchange.fetch, credential })).ask();
  let sent = false;
  try {
    const outgoing = await orAborted(signal, () =>
      Promise.race([exchange.outgoing, answer.then(withoutFetch)]),
    );
    yield [{ type: "request-sent", ...outgoing }];
    signal.throwIfAborted();
    exchange.release();
    sent = true;
    yield* asking.read(answer, { signal, clock });
  } catch (thrown) {
    signal.throwIfAborted();
    const failure = failureOf(exchange.failure() ?? thrown, { sent, now: clock.now() });
    throw failure.redact([...exchange.secrets(), ...(credential === null ? [] : [credential])]);
  } finally {
    // If the call was cancelled before its answer was read, nobody handles its failure.
    answer.catch(() => {});
  }
}

function withoutFetch(): never {
  throw notSent("fetch_not_used", "The provider doesn't use its `fetch`: pass it to the AI SDK.");
}

/** Returns the credential for a call. */
async function credentialOf(
  { connection, apiKey = "" }: AiSdkOptions,
  call: SentCall,
): Promise<string> {
  if (connection === "customer") {
    // Never send a customer's call without a credential: the AI SDK would take one from the environment.
    if (call.credential) return call.credential;
    throw notSent("credential_unavailable", "The organization's credential is missing.");
  }
  if (typeof apiKey === "string") return apiKey;
  try {
    const credential = await orAborted(call.signal, async () => apiKey());
    if (credential !== "") return credential;
  } catch {
    call.signal.throwIfAborted();
  }
  throw notSent("credential_unavailable", "The provider's credential could not be read.");
}

/** Calls the AI SDK, which sends the request itself. The record has its provider's name and the call's options. */
async function* callDirectly<Answer>(
  source: AiSdkSource,
  { asking, signal, clock }: Target<Answer>,
): Events {
  const { provider, sent, ask } = asking.find(source);
  const bodySha256 = hash("sha256", JSON.stringify(sent()));
  yield [{ type: "request-sent", host: provider, bodySha256 }];
  signal.throwIfAborted();
  yield* asking.read(ask(), { signal, clock });
}

/** The running calls. Closing the provider ends them. */
interface OpenCalls {
  /** @throws ProviderError when closed */
  begin(caller: AbortSignal): OpenCall;
  close(): void;
}

interface OpenCall {
  /** Aborts when the caller leaves, the provider is closed or the call is over. */
  readonly signal: AbortSignal;
  end(): void;
}

function createOpenCalls(): OpenCalls {
  const open = new Set<AbortController>();
  let closed = false;
  return {
    begin(caller) {
      caller.throwIfAborted();
      if (closed) throw notSent("provider_closed", "The provider is closed.");
      const controller = new AbortController();
      const leave = (): void => controller.abort(caller.reason);
      caller.addEventListener("abort", leave, { once: true });
      open.add(controller);
      return {
        signal: controller.signal,
        end() {
          caller.removeEventListener("abort", leave);
          open.delete(controller);
          controller.abort();
        },
      };
    },
    close() {
      closed = true;
      for (const controller of open)
        controller.abort(
          new ProviderError("The provider was closed before its answer was complete.", {
            reason: "provider_closed",
            delivery: "unknown",
          }),
        );
    },
  };
}

// The AI SDK's providers put the model's name into a path. These names can't change the target of the path.
const safeName = /^(?!.*(?:^|\/)\.{1,2}(?:\/|$))[A-Za-z0-9][A-Za-z0-9._:@+~/-]{0,199}$/;

/**
 * Returns the language model for a name. A single model accepts only its own name: under another name, a caller would
 * bypass the policy and the prices for that model.
 */
function languageModel(source: AiSdkSource, name: string): AiSdkModel {
  const isOther = isEmbeddingModel(source) || (isModel(source) && source.modelId !== name);
  if (isOther || !safeName.test(name)) throw unknownModel();
  const model = isModel(source) ? source : source.languageModel(name);
  if (isModel(model) && isKnownVersion(model)) return model;
  throw notSent("misconfigured", "The provider has no language model of a supported version.");
}

function unknownModel(): ProviderError {
  return rejected("The provider doesn't have this model.", { status: 404, param: "model" });
}

/** Converts an error of the AI SDK to a ProviderError without the upstream's own text. */
function failureOf(
  thrown: unknown,
  { sent, now }: { readonly sent: boolean; readonly now: number },
): ProviderError {
  if (thrown instanceof ProviderError) return thrown;
  if (APICallError.isInstance(thrown) && (thrown.statusCode ?? 0) >= 300) {
    const { statusCode = 0, responseHeaders = {}, data } = thrown;
    return statusFailure({ status: statusCode, headers: responseHeaders, body: data }, now);
  }
  return (
    transportFailure(thrown) ??
    (sent
      ? invalidAnswer("invalid_answer", "The provider's answer contains no completion.")
      : beforeSending(thrown))
  );
}

function beforeSending(thrown: unknown): ProviderError {
  if (NoSuchModelError.isInstance(thrown))
    return rejected("The provider doesn't have this model.", {
      status: 404,
      param: "model",
    });
  if (
    UnsupportedFunctionalityError.isInstance(thrown) ||
    InvalidPromptError.isInstance(thrown) ||
    TooManyEmbeddingValuesForCallError.isInstance(thrown) ||
    InvalidArgumentError.isInstance(thrown)
  )
    return rejected("The provider's model doesn't support this request.");
  if (LoadAPIKeyError.isInstance(thrown))
    return notSent("credential_unavailable", "The provider's credential could not be read.");
  if (LoadSettingError.isInstance(thrown))
    return notSent("misconfigured", "The provider is not configured correctly.");
  return notSent("not_asked", "The provider failed before it sent the request.");
}

interface ReadOptions {
  readonly signal: AbortSignal;
  readonly clock: Clock;
}

// How long to wait for the end of a stream after the model stopped.
const gracePeriodMs = 2_000;

// The AI SDK takes a quarter of a millisecond per part, and many parts can be available at once.
const maxPartsPerTurn = 64;

/** Reads an answer as events, part by part, until the model stops. */
async function* readAnswer(pending: Promise<AsyncIterator<Part>>, options: ReadOptions): Events {
  const { signal } = options;
  const parts = await orAborted(signal, () => pending);
  const answer = createAnswerReader();
  try {
    for (let read = 1; !answer.finished(); read++) {
      if (read % maxPartsPerTurn === 0) await orAborted(signal, yieldToEventLoop);
      const next = await orAborted(signal, () => parts.next());
      if (next.done === true)
        throw invalidAnswer("answer_cut", "The provider's answer ended before it was complete.");
      const events: CompletionEvent[] = [];
      answer.add(next.value, events);
      if (events.length > 0) yield events;
    }
    await drain(parts, options);
  } finally {
    // Not awaited: the call's signal closes a slow iterator.
    void parts.return?.().catch(() => {});
  }
}

/** Reads the rest of the stream: the connection is reused only if its answer has ended. */
async function drain(parts: AsyncIterator<Part>, { signal, clock }: ReadOptions): Promise<void> {
  const over = Promise.withResolvers<void>();
  const cancelGracePeriod = clock.after(gracePeriodMs, over.resolve);
  const ended = async (): Promise<void> => {
    for (let next = await parts.next(); next.done !== true; next = await parts.next());
  };
  try {
    await orAborted(signal, () => Promise.race([ended().catch(() => {}), over.promise]));
  } finally {
    cancelGracePeriod();
  }
}
