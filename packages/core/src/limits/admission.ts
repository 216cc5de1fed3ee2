import type { Deadlines, Limits } from "../domain/limits.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import type { Clock } from "../kernel/clock.ts";
import type { ProcessLoad } from "../kernel/process-load.ts";

/** The parts of the gateway's limits that keep it from breaking under load. */
export type AdmissionLimits = Pick<
  Limits,
  | "openRequests"
  | "bytesInFlight"
  | "bytesInFlightPerKey"
  | "openings"
  | "waiting"
  | "loopDelay"
  | "heapPercent"
> &
  Pick<Deadlines, "turn">;

/** Above this share of a limit, a key gets no more than its own share. The rest is for keys that have less. */
const fairFrom = 3 / 4;
/** At this multiple of the permitted delay, only keys with nothing in flight are admitted. */
const lateFactor = 8;
/** With fewer requests in flight, no key is refused only because the process is busy. */
const minShare = 4;
/** Keys with nothing in flight that are remembered, so that a busy key isn't forgotten between its requests. */
const maxIdleKeys = 4_096;

interface Parts {
  readonly limits: AdmissionLimits;
  readonly clock: Clock;
  readonly load: ProcessLoad;
}

/** The requests and bytes that one key has in flight. */
class KeyLoad {
  requests = 0;
  bytes = 0;
  /** The places of its requests that wait for their turn, the oldest first. */
  readonly line: Place[] = [];
}

/** A request's place in its key's line. */
interface Place {
  readonly key: KeyLoad;
  /** Monotonic. */
  readonly since: number;
  readonly turn: PromiseWithResolvers<void>;
  hasTurn: boolean;
}

/**
 * Decides whether this process takes a request, before its body is read and before it costs anything. In normal times that
 * takes a few comparisons. Under load, the key with more than its fair share in flight is refused first. Requests that are
 * taken get turns at opening their Steps, one key after the other.
 */
export class Admission {
  readonly limits: AdmissionLimits;
  readonly #clock: Clock;
  readonly #load: ProcessLoad;
  readonly #fairRequests: number;
  readonly #fairBytes: number;
  readonly #heapShare: number;
  readonly #keys = new Map<string, KeyLoad>();
  /** Keys with something in flight. */
  #activeKeys = 0;
  #requests = 0;
  #bytes = 0;
  #opening = 0;
  #waiting = 0;
  /** Keys with requests in line, in the order of their turns. */
  readonly #turns: KeyLoad[] = [];
  #cancelExpiry: (() => void) | null = null;

  constructor({ limits, clock, load }: Parts) {
    this.limits = limits;
    this.#clock = clock;
    this.#load = load;
    this.#fairRequests = limits.openRequests * fairFrom;
    this.#fairBytes = limits.bytesInFlight * fairFrom;
    this.#heapShare = limits.heapPercent / 100;
  }

  /** The requests that were admitted and have not ended. */
  get admitted(): number {
    return this.#requests;
  }

  /** A ticket for a request of a key. It has no effect until it is admitted. */
  ticketFor(keyId: string): Ticket {
    return new Ticket(this, this.#keyLoad(keyId));
  }

  /** @throws GatewayError `overloaded` */
  requireRoom(key: KeyLoad, bytes: number): void {
    const isLate = this.#load.loopDelay() >= this.limits.loopDelay;
    const isHeapFull = this.#load.heapShare() >= this.#heapShare;
    if (
      !isLate &&
      !isHeapFull &&
      this.#requests < this.#fairRequests &&
      this.#bytes + bytes <= this.#fairBytes &&
      key.bytes + bytes <= this.limits.bytesInFlightPerKey
    )
      return;
    if (this.#isFull(key) || this.#exceedsShare(key, isLate || isHeapFull)) throw overloaded();
    this.requireBytes(key, bytes, 0);
  }

  #isFull(key: KeyLoad): boolean {
    const { openRequests, loopDelay } = this.limits;
    return (
      this.#requests >= openRequests ||
      this.#load.heapShare() >= (1 + this.#heapShare) / 2 ||
      (this.#load.loopDelay() >= loopDelay * lateFactor && key.requests > 0)
    );
  }

  /** A key with nothing in flight is never above its share. */
  #exceedsShare(key: KeyLoad, isBusy: boolean): boolean {
    const keys = this.#activeKeys;
    const { requests } = key;
    if (isBusy && requests >= minShare && requests * keys > this.#requests) return true;
    // Room is left for one more key: a limit that one key has used up would shut out all others.
    return this.#requests >= this.#fairRequests && key.requests * (keys + 1) > this.#requests;
  }

  /**
   * Refuses bytes of a body, of which the request already holds `own`, if there is no room for them. A single request may be
   * larger than both budgets.
   * @throws GatewayError `overloaded`
   */
  requireBytes(key: KeyLoad, bytes: number, own: number): void {
    const { bytesInFlight, bytesInFlightPerKey } = this.limits;
    const all = this.#bytes + bytes;
    const others = key.bytes - own;
    const isOver =
      (others > 0 && key.bytes + bytes > bytesInFlightPerKey) ||
      (this.#bytes > own && all > bytesInFlight) ||
      (all > this.#fairBytes && others * (this.#activeKeys + 1) > this.#bytes);
    if (isOver) throw overloaded();
  }

  add(key: KeyLoad, requests: number, bytes: number): void {
    if (key.requests === 0) this.#activeKeys++;
    key.requests += requests;
    key.bytes += bytes;
    this.#requests += requests;
    this.#bytes += bytes;
    if (key.requests === 0) this.#activeKeys--;
  }

  /** Takes a turn and returns null, or a place in the key's line. */
  takeTurn(key: KeyLoad): Place | null {
    if (this.#opening < this.limits.openings && this.#waiting === 0) {
      this.#opening++;
      return null;
    }
    if (this.#waiting >= this.limits.waiting) this.#refuseOldest(key);
    const since = this.#clock.monotonic();
    const place = { key, since, turn: Promise.withResolvers<void>(), hasTurn: false };
    if (key.line.push(place) === 1) this.#turns.push(key);
    this.#waiting++;
    this.#cancelExpiry ??= this.#clock.after(this.limits.turn, () => this.#refuseExpired());
    return place;
  }

  endTurn(): void {
    this.#opening--;
    while (this.#opening < this.limits.openings) {
      const [key] = this.#turns;
      const place = key?.line[0];
      if (key === undefined || place === undefined) return;
      this.leaveLine(place);
      // The key's next request waits until every other key had its turn.
      if (key.line.length > 0) this.#turns.push(...this.#turns.splice(0, 1));
      this.#opening++;
      place.hasTurn = true;
      place.turn.resolve();
    }
  }

  /** Does nothing if the place has left its line already. */
  leaveLine(place: Place): void {
    const { key } = place;
    const at = key.line.indexOf(place);
    if (at < 0) return;
    key.line.splice(at, 1);
    this.#waiting--;
    if (key.line.length === 0) this.#turns.splice(this.#turns.indexOf(key), 1);
    if (this.#waiting > 0) return;
    this.#cancelExpiry?.();
    this.#cancelExpiry = null;
  }

  /** Refuses the oldest request of the longest line: its client has waited longest, and its key has the most others. */
  #refuseOldest(arriving: KeyLoad): void {
    const lengthOf = (key: KeyLoad): number => key.line.length + (key === arriving ? 1 : 0);
    const [first = arriving] = this.#turns;
    const longest = this.#turns.reduce(
      (one, other) => (lengthOf(other) > lengthOf(one) ? other : one),
      first,
    );
    const [oldest] = longest.line;
    if (oldest !== undefined) this.#refuse(oldest);
  }

  #refuseExpired(): void {
    const now = this.#clock.monotonic();
    const { turn } = this.limits;
    this.#cancelExpiry = null;
    const places = this.#turns.flatMap(({ line }) => line);
    for (const place of places) if (now - place.since >= turn) this.#refuse(place);
    if (this.#waiting === 0) return;
    const oldest = Math.min(...this.#turns.map(({ line }) => line[0]?.since ?? now));
    this.#cancelExpiry = this.#clock.after(oldest + turn - now, () => this.#refuseExpired());
  }

  #refuse(place: Place): void {
    this.leaveLine(place);
    place.turn.reject(overloaded());
  }

  #keyLoad(keyId: string): KeyLoad {
    const known = this.#keys.get(keyId);
    if (known !== undefined) return known;
    if (this.#keys.size - this.#activeKeys >= maxIdleKeys)
      for (const [id, { requests }] of this.#keys) if (requests === 0) this.#keys.delete(id);
    const key = new KeyLoad();
    this.#keys.set(keyId, key);
    return key;
  }
}

/** The room that one request takes in the process, from its body to the end of its answer. */
export class Ticket {
  readonly #admission: Admission;
  readonly #key: KeyLoad;
  #isAdmitted = false;
  #bytes = 0;
  /** Whether it took a turn without waiting. */
  #hasTurn = false;
  /** Its place in line, also after its turn has come; null if it never waited. */
  #place: Place | null = null;

  constructor(admission: Admission, key: KeyLoad) {
    this.#admission = admission;
    this.#key = key;
  }

  /**
   * Takes room for the request and the bytes of its body, before they are read.
   * @throws GatewayError `overloaded`
   */
  admit(bytes: number): void {
    this.#admission.requireRoom(this.#key, bytes);
    this.#isAdmitted = true;
    this.#bytes = bytes;
    this.#admission.add(this.#key, 1, bytes);
  }

  /**
   * Takes room for bytes that were not announced, as they arrive.
   * @throws GatewayError `overloaded`
   */
  grow(bytes: number): void {
    if (bytes === 0) return;
    this.#admission.requireBytes(this.#key, bytes, this.#bytes);
    this.#bytes += bytes;
    this.#admission.add(this.#key, 0, bytes);
  }

  /**
   * Waits for the request's turn to open its Step; null if it has come. Rejects with GatewayError `overloaded` if it waited
   * too long, or longest in a full line.
   */
  turn(): Promise<void> | null {
    this.#place = this.#admission.takeTurn(this.#key);
    this.#hasTurn = this.#place === null;
    return this.#place?.turn.promise ?? null;
  }

  /** The Step is open, or won't open. Safe to call twice. */
  opened(): void {
    const place = this.#place;
    this.#place = null;
    if (this.#hasTurn || place?.hasTurn === true) this.#admission.endTurn();
    else if (place !== null) this.#admission.leaveLine(place);
    this.#hasTurn = false;
  }

  /**
   * Hands its room over to an answer that is written after its Step has ended. Takes room for the answer's bytes if they are
   * more, even if there is none: the answer is paid for. Release the returned ticket, too.
   */
  handOver(bytes = 0): Ticket {
    const next = new Ticket(this.#admission, this.#key);
    if (!this.#isAdmitted) return next;
    next.#isAdmitted = true;
    next.#bytes = Math.max(bytes, this.#bytes);
    this.#isAdmitted = false;
    this.#admission.add(this.#key, 0, next.#bytes - this.#bytes);
    return next;
  }

  /** The answer has ended. Safe to call twice. */
  release(): void {
    this.opened();
    if (!this.#isAdmitted) return;
    this.#isAdmitted = false;
    this.#admission.add(this.#key, -1, -this.#bytes);
  }
}

function overloaded(): GatewayError {
  return new GatewayError("overloaded", "The gateway has too much to do. Try again in a second.", {
    headers: { "retry-after": "1" },
  });
}
