import { isLarge, yieldToEventLoop } from "../kernel/event-loop.ts";
import type { Timed, Timers } from "../kernel/timers.ts";
import type { TextSink } from "./gateway-response.ts";

/** The headers of an event stream. */
export const eventStreamHeaders = {
  "content-type": "text/event-stream; charset=utf-8",
  "cache-control": "no-cache",
  "x-accel-buffering": "no",
} as const;

/** A comment that keeps a silent connection open. Clients ignore it. */
export const ping = ": ping\n\n";

/** How often a silent stream sends a ping, in milliseconds, and its text. */
interface Heartbeat {
  readonly timers: Timers;
  readonly every: number;
  readonly text: string;
}

/** Characters to send at once: pieces are joined until there are enough. */
const enough = 65_536;
const never = Number.POSITIVE_INFINITY;

/**
 * Writes the events of a stream to a sink. While the sink has room but no event comes, it sends a ping at every interval.
 */
export class EventOutput implements Timed {
  readonly #sink: TextSink;
  readonly #heartbeat: Heartbeat;
  readonly #slot: number;
  #full: Promise<void> | null = null;
  #writing: Promise<void> | null = null;
  #isOver = false;
  /** Monotonic; `never` while the sink is full. */
  #pingAt = never;

  constructor(sink: TextSink, heartbeat: Heartbeat) {
    this.#sink = sink;
    this.#heartbeat = heartbeat;
    this.#slot = heartbeat.timers.add(this, never);
    this.#waitForMore();
  }

  /**
   * Writes a text, or pieces that are created when there is room for them, after all earlier writes. Returns null if
   * everything is written and the sink can take more; otherwise a promise that resolves at that point.
   */
  write(all: string | Iterable<string>): Promise<void> | null {
    if (this.#writing !== null || this.#full !== null)
      return this.#queue(piecesOf(typeof all === "string" ? [all] : all));
    if (typeof all === "string") {
      this.#pass(all);
      return this.#full;
    }
    const pieces = piecesOf(all);
    this.#pass(pieces.take());
    return pieces.isOver() ? this.#full : this.#queue(pieces);
  }

  /** Writes nothing more. A pending wait for the sink continues. Safe to call twice. */
  stop(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#pingAt = never;
    this.#heartbeat.timers.remove(this.#slot);
  }

  check(now: number): number {
    if (now >= this.#pingAt) this.#pass(this.#heartbeat.text);
    return this.#pingAt;
  }

  #pass(text: string): void {
    if (this.#isOver || text === "") return;
    const room = this.#sink.write(text);
    if (room === null) this.#waitForMore();
    else {
      this.#pingAt = never;
      this.#full = room.then(() => this.#goOn());
    }
  }

  #goOn(): void {
    this.#full = null;
    this.#waitForMore();
  }

  #waitForMore(): void {
    if (this.#isOver) return;
    const { timers, every } = this.#heartbeat;
    this.#pingAt = timers.now() + every;
    timers.checkBy(this.#pingAt);
  }

  #queue(pieces: Pieces): Promise<void> {
    const mine = (this.#writing ?? Promise.resolve())
      .then(() => this.#writeRest(pieces))
      .finally(() => {
        if (this.#writing === mine) this.#writing = null;
      });
    this.#writing = mine;
    return mine;
  }

  async #writeRest(pieces: Pieces): Promise<void> {
    while (!this.#isOver && !pieces.isOver()) {
      if (this.#full !== null) await this.#full;
      const text = pieces.take();
      this.#pass(text);
      if (isLarge(text.length)) await yieldToEventLoop();
    }
    if (this.#full !== null) await this.#full;
  }
}

export interface Pieces {
  take(): string;
  isOver(): boolean;
}

/** Joins pieces until there is enough to send at once. */
export function piecesOf(all: Iterable<string>): Pieces {
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
