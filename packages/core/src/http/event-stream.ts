import type { Clock } from "../kernel/clock.ts";
import { isLarge, otherWork } from "../kernel/other-work.ts";
import type { TextSink } from "./answer.ts";

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

/** Writes the events of one stream. */
export interface EventOutput {
  /**
   * Writes pieces, which are made when there is room for them, after all that was written before. Null when all of them are
   * written and the sink can take more; else resolves when that is so.
   */
  write(pieces: Iterable<string>): Promise<void> | null;
  /** Nothing more is made or written; a wait for the sink goes on. */
  stop(): void;
}

/** While a stream is silent its Step is open, and that keeps the process alive. */
const background = { background: true };
/** As much as is sent at once, in characters: pieces are joined until there is enough. */
const enough = 65_536;

/** Writes to a sink, with a ping for every `every` milliseconds that it could take more and nothing comes. */
export function createEventOutput(sink: TextSink, heartbeat: Heartbeat): EventOutput {
  let full: Promise<void> | null = null;
  let writing: Promise<void> | null = null;
  let isOver = false;
  const silence = watchSilence(heartbeat, () => pass(ping));
  silence.begin();

  function goOn(): void {
    full = null;
    if (!isOver) silence.begin();
  }
  function pass(text: string): void {
    if (isOver || text === "") return;
    silence.end();
    const room = sink.write(text);
    if (room === null) goOn();
    else full = room.then(goOn);
  }
  async function writeRest(pieces: Pieces): Promise<void> {
    while (!isOver && !pieces.isOver()) {
      if (full !== null) await full;
      const text = pieces.take();
      pass(text);
      if (isLarge(text.length)) await otherWork();
    }
    if (full !== null) await full;
  }
  function queue(pieces: Pieces): Promise<void> {
    const mine = (writing ?? Promise.resolve())
      .then(() => writeRest(pieces))
      .finally(() => {
        if (writing === mine) writing = null;
      });
    writing = mine;
    return mine;
  }
  return {
    write(all) {
      const pieces = piecesOf(all);
      if (writing !== null || full !== null) return queue(pieces);
      pass(pieces.take());
      return pieces.isOver() ? full : queue(pieces);
    },
    stop() {
      isOver = true;
      silence.stop();
    },
  };
}

interface Pieces {
  take(): string;
  isOver(): boolean;
}

/** Joins pieces until there is enough to send at once. */
function piecesOf(all: Iterable<string>): Pieces {
  const iterator = all[Symbol.iterator]();
  let isOver = false;
  return {
    take() {
      let text = "";
      while (!isOver && text.length < enough) {
        const { done, value } = iterator.next();
        if (done === true) isOver = true;
        else text += value;
      }
      return text;
    },
    isOver: () => isOver,
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
