import { hash } from "node:crypto";
import { type Clock, type Duration, parseDuration, systemClock } from "@tollgate/core";
import type {
  Billing,
  CompletionEvent,
  ListedModel,
  Provider,
  ProviderCall,
  StateNeeds,
} from "@tollgate/core/provider";
import { type Barrier, createBarrier, type ProviderBarrier, untilAborted } from "./barrier.ts";
import { eventsOf, type ScriptedAnswer } from "./scripted-answer.ts";

/** A call as the provider got it, and the gateway it came in by. */
export interface ScriptedCall extends ProviderCall {
  readonly gateway: string;
}

/** Text, a whole answer, or a function of the call that gives one. */
export type Reply =
  | string
  | ScriptedAnswer
  | ((call: ScriptedCall) => string | ScriptedAnswer | Promise<string | ScriptedAnswer>);

/** For which calls a reply is meant. */
export interface ReplyOptions {
  /** Default: any call. */
  readonly when?: (call: ScriptedCall) => boolean;
  /** For how many calls; default 1, `Infinity` for all. */
  readonly times?: number;
}

/** A provider that says what a test tells it to, and remembers what it was asked. */
export interface ScriptedProvider extends Provider {
  /** Every call so far, in order. */
  readonly calls: readonly ScriptedCall[];
  /** Answers a coming call: of the replies that fit it, the one given first. Unscripted calls get the text `OK`. */
  reply(reply: Reply, options?: ReplyOptions): void;
  /** Fails a coming call, after so many events of an answer (default 0: before the first). */
  fail(error: Error, options?: ReplyOptions & FailOptions): void;
  /** Makes every call wait, after so many events of its answer (default 0), until the hold is released. */
  hold(options?: { readonly afterEvents?: number }): Barrier;
  /** The same provider under a further gateway's name. */
  at(gateway: string): Provider;
}

/** When a scripted failure comes. */
export interface FailOptions {
  readonly afterEvents?: number;
  /** The answer it breaks off; default the text `OK`. */
  readonly answer?: ScriptedAnswer;
}

/** What a scripted provider is made of. */
export interface ScriptedProviderOptions {
  /** Delays wait on it; default the machine's. */
  readonly clock?: Clock;
  /** Listed models with prices in US dollars per million tokens, by `<vendor>/<model>`. Default none. */
  readonly models?: Readonly<Record<string, ListedModel>>;
  /** Whether models that are not listed can be called too. Default true. */
  readonly open?: boolean;
  /** The vendor whose models lose their vendor in `upstreamName`. Default none. */
  readonly vendor?: string;
  /** How its calls are billed. Default: by the price table alone. */
  readonly billing?: Billing;
  /** What of provider state its models take back. Default as for every provider. */
  readonly stateNeeds?: (model: string) => StateNeeds;
}

interface ScriptedReply {
  readonly reply: Reply;
  readonly when: (call: ScriptedCall) => boolean;
  remaining: number;
}

const defaultAnswer: ScriptedAnswer = { text: "OK" };

/** Makes a provider that answers by script, under the gateway name `test` and any other. */
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

  /** What a test wants to happen before the event at this place of an answer. */
  async function beforeEvent(index: number, answer: ScriptedAnswer, signal: AbortSignal) {
    for (const { afterEvents, barrier } of barriers)
      if (afterEvents === index) await barrier.pass(signal);
    const wait = index === 0 ? answer.delay : answer.pace;
    if (wait !== undefined) await pause(clock, wait, signal);
    const { failure } = answer;
    if (failure && (failure.afterEvents ?? 0) === index && !signal.aborted) throw failure.error;
  }

  async function* complete(call: ScriptedCall): AsyncGenerator<readonly CompletionEvent[]> {
    const { gateway, model, request, stream, signal } = call;
    calls.push(call);
    const bodySha256 = hash("sha256", JSON.stringify({ model, stream, ...request }));
    yield [{ type: "request-sent", host: `${gateway}.test`, bodySha256 }];
    const answer = await answerTo(call);
    const events = eventsOf(answer);
    for (const [index, event] of events.entries()) {
      await beforeEvent(index, answer, signal);
      if (signal.aborted) return;
      if (stream) yield [event];
    }
    await beforeEvent(events.length, answer, signal);
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
