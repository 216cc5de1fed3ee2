import type { Deadlines, Limits } from "../domain/limits.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import type { Clock } from "../kernel/clock.ts";
import type { ProcessLoad } from "../kernel/process-load.ts";
import { type Place, Turns } from "./turns.ts";

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
/** Reads of stored responses at once. In this process, each may keep the event loop for tens of milliseconds. */
const readsAtOnce = 8;

interface Parts {
  readonly limits: AdmissionLimits;
  readonly clock: Clock;
  readonly load: ProcessLoad;
}

/** The requests and bytes that one key has in flight. */
class KeyLoad {
  requests = 0;
  bytes = 0;
}

/**
 * Decides whether this process takes a request, before its body is read and before it costs anything. In normal times that
 * takes a few comparisons. Under load, the key with more than its fair share in flight is refused first. Requests that are
 * taken get turns at opening their Steps or reading stored responses, one key after the other.
 */
export class Admission {
  readonly limits: AdmissionLimits;
  readonly openings: Turns;
  readonly reads: Turns;
  readonly #load: ProcessLoad;
  readonly #fairRequests: number;
  readonly #fairBytes: number;
  readonly #heapShare: number;
  readonly #keys = new Map<string, KeyLoad>();
  /** Keys with something in flight. */
  #activeKeys = 0;
  #requests = 0;
  #bytes = 0;

  constructor({ limits, clock, load }: Parts) {
    this.limits = limits;
    const { openings, waiting, turn } = limits;
    this.openings = new Turns({ atOnce: openings, waiting, wait: turn }, clock, overloaded);
    this.reads = new Turns({ atOnce: readsAtOnce, waiting, wait: turn }, clock, overloaded);
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
  /** The turn that it took without waiting. */
  #turns: Turns | null = null;
  /** Its place in line, even after its turn has come; null if it never waited. */
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
   * Waits for the request's turn to open its Step, or to read a stored response; null if it has come. Rejects with
   * GatewayError `overloaded` if it waited too long, or longest in a full line.
   */
  turn(at: "openings" | "reads"): Promise<void> | null {
    const turns = this.#admission[at];
    this.#place = turns.take(this.#key);
    this.#turns = this.#place === null ? turns : null;
    return this.#place?.turn.promise ?? null;
  }

  /** The Step is open or the response read, or won't be. Safe to call twice. */
  endTurn(): void {
    const place = this.#place;
    const turns = place?.hasTurn === true ? place.turns : this.#turns;
    this.#place = null;
    this.#turns = null;
    if (turns !== null) turns.end();
    else if (place !== null) place.turns.leave(place);
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
    this.endTurn();
    if (!this.#isAdmitted) return;
    this.#isAdmitted = false;
    this.#admission.add(this.#key, -1, -this.#bytes);
  }
}

function overloaded(): GatewayError {
  return new GatewayError("overloaded", "The gateway is overloaded. Try again in a second.", {
    headers: { "retry-after": "1" },
  });
}
