import { hash } from "node:crypto";
import { type Clock, type Duration, parseDuration, systemClock } from "@tollgate/core";
import type {
  Billing,
  CompletionEvent,
  EmbeddingRequest,
  ListedModel,
  Provider,
  ProviderCall,
  StateNeeds,
} from "@tollgate/core/provider";
import { type Barrier, createBarrier, type ProviderBarrier, untilAborted } from "./barrier.ts";
import { embeddingEventsOf, eventsOf, type ScriptedAnswer } from "./scripted-answer.ts";

/** A call that the provider received, with the name of its gateway. */
export interface ScriptedCall extends ProviderCall {
  readonly gateway: string;
  /** The embeddings request, whose `request` has no messages. Absent for any other call. */
  readonly embedding?: EmbeddingRequest;
}

/** Text, an answer, or a function that returns one for a call. */
export type Reply =
  | string
  | ScriptedAnswer
  | ((call: ScriptedCall) => string | ScriptedAnswer | Promise<string | ScriptedAnswer>);

/** The calls that a reply is for. */
export interface ReplyOptions {
  /** Default: any call. */
  readonly when?: (call: ScriptedCall) => boolean;
  /** The number of calls. Default 1; `Infinity` for all. */
  readonly times?: number;
}

/** A provider that answers by a test's script and records its calls. */
export interface ScriptedProvider extends Provider {
  /** Every call so far, in order. */
  readonly calls: readonly ScriptedCall[];
  /** Scripts the reply to a later call. The first matching reply is used. Calls without a reply get the text `OK`. */
  reply(reply: Reply, options?: ReplyOptions): void;
  /** Makes a later call fail after this many events of its answer. Default 0: before the first. */
  fail(error: Error, options?: ReplyOptions & FailOptions): void;
  /** Makes every call wait after this many events of its answer (default 0) until the barrier is released. */
  hold(options?: { readonly afterEvents?: number }): Barrier;
  /** Returns the same provider under another gateway's name. */
  at(gateway: string): Provider;
}

/** Details of a scripted failure. */
export interface FailOptions {
  readonly afterEvents?: number;
  /** The answer that it interrupts. Default: the text `OK`. */
  readonly answer?: ScriptedAnswer;
}

/** Options of a scripted provider. */
export interface ScriptedProviderOptions {
  /** The clock for delays. Default: the machine's. */
  readonly clock?: Clock;
  /** Listed models with prices in US dollars per million tokens, by `<vendor>/<model>`. Default none. */
  readonly models?: Readonly<Record<string, ListedModel>>;
  /** Whether unlisted models can be called too. Default true. */
  readonly open?: boolean;
  /** The vendor that `upstreamName` leaves out. Default none. */
  readonly vendor?: string;
  /** How its calls are billed. Default: by the price table only. */
  readonly billing?: Billing;
  /** The provider state that its models need back. Default: as for any provider. */
  readonly stateNeeds?: (model: string) => StateNeeds;
}

interface ScriptedReply {
  readonly reply: Reply;
  readonly when: (call: ScriptedCall) => boolean;
  remaining: number;
}

const nothing: ProviderCall["request"] = { messages: [] };
const defaultAnswer: ScriptedAnswer = { text: "OK" };

/** Creates a provider that answers by script, under the gateway name `test` and any other. */
export function scriptedProvider(options: ScriptedProviderOptions = {}): ScriptedProvider {
  const { clock = systemClock, models = {}, open = true, vendor = null } = options;
  const { billing, stateNeeds } = options;
  const calls: ScriptedCall[] = [];
  const script: ScriptedReply[] = [];
  const barriers: { readonly afterEvents: number; readonly barrier: ProviderBarrier }[] = [];

  async function answerTo(call: ScriptedCall): Promise<ScriptedAnswer> {
    const index = script.findIndex(({ when }) => when(call));
    const next = script[index];
    if (!next) return defaultAnswer;
    next.remaining--;
    if (next.remaining <= 0) script.splice(index, 1);
    const reply = typeof next.reply === "function" ? await next.reply(call) : next.reply;
    return typeof reply === "string" ? { text: reply } : reply;
  }

  /** Runs the scripted waits and failures before the event at this index. Returns null if there are none. */
  function beforeEvent(index: number, answer: ScriptedAnswer, signal: AbortSignal) {
    const isAwaited = (index === 0 ? answer.delay : answer.pace) !== undefined;
    return isAwaited || answer.failure || barriers.length > 0
      ? runScript(index, answer, signal)
      : null;
  }

  async function runScript(index: number, answer: ScriptedAnswer, signal: AbortSignal) {
    for (const { afterEvents, barrier } of barriers)
      if (afterEvents === index) await barrier.pass(signal);
    const wait = index === 0 ? answer.delay : answer.pace;
    if (wait !== undefined) await pause(clock, wait, signal);
    const { failure } = answer;
    if (failure && (failure.afterEvents ?? 0) === index && !signal.aborted) throw failure.error;
  }

  async function* complete(call: ScriptedCall): AsyncGenerator<readonly CompletionEvent[]> {
    const { gateway, model, request, embedding, stream, signal } = call;
    calls.push(call);
    const sent = { model, stream, ...request, ...embedding };
    const bodySha256 = hash("sha256", JSON.stringify(sent));
    yield [{ type: "request-sent", host: `${gateway}.test`, bodySha256 }];
    const answer = await answerTo(call);
    const events = embedding ? embeddingEventsOf(answer, embedding) : eventsOf(answer);
    for (const [index, event] of events.entries()) {
      const script = beforeEvent(index, answer, signal);
      if (script) await script;
      if (signal.aborted) return;
      if (stream) yield [event];
    }
    const script = beforeEvent(events.length, answer, signal);
    if (script) await script;
    if (!stream && !signal.aborted) yield events;
  }

  const at = (gateway: string): Provider => ({
    contract: 1,
    connection: "platform",
    models,
    ...(billing === undefined ? {} : { billing }),
    open,
    vendor,
    problems: [],
    ...(stateNeeds && { stateNeeds }),
    complete: (call) => complete({ ...call, gateway }),
    embed: ({ request: embedding, ...call }) =>
      complete({ ...call, gateway, embedding, request: nothing, outputCap: 0, stream: false }),
    async close() {},
  });

  const reply: ScriptedProvider["reply"] = (reply, { when = () => true, times = 1 } = {}) => {
    if (times > 0) script.push({ reply, when, remaining: times });
  };

  return {
    ...at("test"),
    calls,
    reply,
    fail: (error, { afterEvents = 0, answer = defaultAnswer, ...options } = {}) =>
      reply({ ...answer, failure: { error, afterEvents } }, options),
    hold({ afterEvents = 0 } = {}) {
      const barrier = createBarrier();
      barriers.push({ afterEvents, barrier });
      return barrier;
    },
    at,
  };
}

function pause(clock: Clock, duration: Duration, signal: AbortSignal): Promise<void> {
  const over = Promise.withResolvers<void>();
  const cancel = clock.after(parseDuration(duration) ?? 0, over.resolve);
  return untilAborted(over.promise, signal).finally(cancel);
}
