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

type Item = IteratorResult<string, undefined>;
const beat: Item = { done: false, value: ping };
const ended: Item = { done: true, value: undefined };

/** Written as an iterator, not a generator: a generator that waits cannot be ended before its wait is over. */
function beating(
  source: AsyncIterator<string, unknown>,
  { clock, every }: Heartbeat,
): AsyncIterator<string, undefined> {
  // What the source was asked for and has not answered; it outlives pings.
  let asked: Promise<Item> | null = null;
  let endWait: () => void = () => {};
  let isEnded = false;

  const ask = async (): Promise<Item> => {
    const { done, value } = await source.next();
    return done ? ended : { done: false, value };
  };

  return {
    async next() {
      if (isEnded) return ended;
      asked ??= ask();
      const silence = Promise.withResolvers<Item>();
      endWait = () => silence.resolve(ended);
      const cancel = clock.after(every, () => silence.resolve(beat));
      try {
        const item = await Promise.race([asked, silence.promise]);
        if (item !== beat) asked = null;
        return item;
      } finally {
        cancel();
      }
    },
    async return() {
      isEnded = true;
      endWait();
      await source.return?.();
      return ended;
    },
  };
}
