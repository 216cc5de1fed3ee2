import type { Clock } from "../kernel/clock.ts";

/** A place in line for a turn. */
export interface Place {
  readonly turns: Turns;
  readonly key: object;
  /** Monotonic. */
  readonly since: number;
  readonly turn: PromiseWithResolvers<void>;
  hasTurn: boolean;
}

interface TurnLimits {
  /** Turns at once. */
  readonly atOnce: number;
  /** Places in line. */
  readonly waiting: number;
  /** How long a place may wait, in milliseconds. */
  readonly wait: number;
}

/**
 * Gives requests turns at something that the process does a limited number of times at once. Others wait in a line for each
 * key, and the lines take turns. A place that waits too long is refused, or in a full line the one that waited longest.
 */
export class Turns {
  readonly #limits: TurnLimits;
  readonly #clock: Clock;
  readonly #refusal: () => Error;
  #taken = 0;
  #waiting = 0;
  /** The lines of all keys with requests that wait, in the order of their turns. In each line, the oldest place is first. */
  readonly #lines = new Map<object, Place[]>();
  #cancelExpiry: (() => void) | null = null;

  constructor(limits: TurnLimits, clock: Clock, refusal: () => Error) {
    this.#limits = limits;
    this.#clock = clock;
    this.#refusal = refusal;
  }

  /** Takes a turn and returns null, or a place in the key's line. */
  take(key: object): Place | null {
    if (this.#taken < this.#limits.atOnce && this.#waiting === 0) {
      this.#taken++;
      return null;
    }
    if (this.#waiting >= this.#limits.waiting) this.#refuseOldest(key);
    const since = this.#clock.monotonic();
    const turn = Promise.withResolvers<void>();
    const place = { turns: this, key, since, turn, hasTurn: false };
    const line = this.#lines.get(key);
    if (line === undefined) this.#lines.set(key, [place]);
    else line.push(place);
    this.#waiting++;
    this.#cancelExpiry ??= this.#clock.after(this.#limits.wait, () => this.#refuseExpired());
    return place;
  }

  end(): void {
    this.#taken--;
    while (this.#waiting > 0 && this.#taken < this.#limits.atOnce) this.#next();
  }

  #next(): void {
    const [line = []] = this.#lines.values();
    const [place] = line;
    if (place === undefined) return;
    // The key's next request waits until every other key had its turn.
    this.#lines.delete(place.key);
    this.#lines.set(place.key, line);
    this.leave(place);
    this.#taken++;
    place.hasTurn = true;
    place.turn.resolve();
  }

  /** Does nothing if the place has already left its line. */
  leave(place: Place): void {
    const line = this.#lines.get(place.key) ?? [];
    const at = line.indexOf(place);
    if (at < 0) return;
    line.splice(at, 1);
    this.#waiting--;
    if (line.length === 0) this.#lines.delete(place.key);
    if (this.#waiting > 0) return;
    this.#cancelExpiry?.();
    this.#cancelExpiry = null;
  }

  /** Refuses the oldest place of the longest line: its client has waited longest, and its key has the most others. */
  #refuseOldest(arriving: object): void {
    let [longest, most]: [readonly Place[], number] = [[], 0];
    for (const [key, line] of this.#lines) {
      const length = line.length + (key === arriving ? 1 : 0);
      if (length > most) [longest, most] = [line, length];
    }
    const [oldest] = longest;
    if (oldest !== undefined) this.#refuse(oldest);
  }

  #refuseExpired(): void {
    const now = this.#clock.monotonic();
    const { wait } = this.#limits;
    this.#cancelExpiry = null;
    const places = [...this.#lines.values()].flat();
    for (const place of places) if (now - place.since >= wait) this.#refuse(place);
    if (this.#waiting === 0) return;
    const oldest = Math.min(...[...this.#lines.values()].map(([place]) => place?.since ?? now));
    this.#cancelExpiry = this.#clock.after(oldest + wait - now, () => this.#refuseExpired());
  }

  #refuse(place: Place): void {
    this.leave(place);
    place.turn.reject(this.#refusal());
  }
}
