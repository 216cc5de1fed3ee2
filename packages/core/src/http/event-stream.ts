import type { Clock } from "../kernel/clock.ts";

/** The headers of a stream of events. */
export const eventStreamHeaders = {
  "content-type": "text/event-stream; charset=utf-8",
  "cache-control": "no-cache",
  "x-accel-buffering": "no",
} as const;

/** A comment: keeps a silent connection open and means nothing to the client. */
export const ping = ": ping\n\n";

/** How often a silent stream is heard of, in milliseconds. */
export interface Heartbeat {
  readonly clock: Clock;
  readonly every: number;
}

/** The source's items, with a ping for every `every` milliseconds that it stays silent while being read. */
export function withHeartbeat(
  source: AsyncIterable<string>,
  heartbeat: Heartbeat,
): AsyncIterable<string> {
  return { [Symbol.asyncIterator]: () => beating(source[Symbol.asyncIterator](), heartbeat) };
}

/** While a stream is silent its Step is open, and that keeps the process alive. */
const background = { background: true };

type Item = IteratorResult<string, undefined>;
const beat: Item = { done: false, value: ping };
const ended: Item = { done: true, value: undefined };

/** Written as an iterator, not a generator: a generator that waits cannot be ended before its wait is over. */
function beating(
  source: AsyncIterator<string, unknown>,
  heartbeat: Heartbeat,
): AsyncIterator<string, undefined> {
  // What the source was asked for and has not answered; it outlives pings.
  let asked: Promise<Item> | null = null;
  let answer = (_item: Item): void => {};
  let isEnded = false;
  const silence = watchSilence(heartbeat, () => answer(beat));

  const ask = async (): Promise<Item> => {
    const { done, value } = await source.next();
    return done ? ended : { done: false, value };
  };
  const end = (): void => {
    isEnded = true;
    silence.stop();
  };

  return {
    async next() {
      if (isEnded) return ended;
      asked ??= ask();
      const interrupted = Promise.withResolvers<Item>();
      answer = interrupted.resolve;
      silence.begin();
      try {
        const item = await Promise.race([asked, interrupted.promise]);
        if (item !== beat) asked = null;
        if (item === ended) end();
        return item;
      } catch (error) {
        end();
        throw error;
      } finally {
        silence.end();
      }
    },
    async return() {
      end();
      answer(ended);
      await source.return?.();
      return ended;
    },
  };
}

/** Tells when somebody has waited too long, however often waits begin and end: one timer, moved only when it fires. */
function watchSilence({ clock, every }: Heartbeat, tooLong: () => void) {
  let since: number | null = null;
  let cancel: (() => void) | null = null;

  function check(): void {
    cancel = null;
    if (since === null) return;
    const rest = since + every - clock.monotonic();
    if (rest > 0) cancel = clock.after(rest, check, background);
    else tooLong();
  }
  return {
    begin() {
      since = clock.monotonic();
      cancel ??= clock.after(every, check, background);
    },
    end() {
      since = null;
    },
    stop() {
      cancel?.();
      cancel = null;
    },
  };
}
