import type { Attempt, Step } from "./step.ts";
import type { FewFigures, Figures } from "./usage-sums.ts";

/**
 * The groups of a `UsageHour`. The names of callers and places are there once, and groups name them by index. A month has tens
 * of thousands of groups, so they are bytes, which are read without an object for each.
 */
export interface PackedSteps {
  /** JSON of `Names`, sorted: hours with the same callers and places have the same text. */
  readonly names: string;
  /**
   * Numbers of 7 bits per byte, the lowest first; a byte of 128 or more has another after it. A group is its caller, when its
   * newest Step opened in milliseconds after the hour, its count, and the number of its places. A place is its index, the
   * number of its figures, and for each its place in `Figures` and its amount. Counts and places carry a sign in their lowest bit.
   */
  readonly figures: Uint8Array;
}

/** Who made Steps, and what became of them. */
export interface HourCaller
  extends Pick<Step, "organizationId" | "userId" | "keyId" | "keyLabel" | "source" | "outcome"> {
  readonly dataClass: string;
}

/** The model and the account of attempts. */
export type HourPlace = Pick<Attempt, "gateway" | "vendor" | "model" | "connection">;

/** Steps that agree in every dimension that `UsageHour` keeps, and the sums over their attempts by model and account. */
export interface FoldedSteps extends HourCaller {
  /** When the newest of them opened. */
  readonly openedAt: number;
  /** How many Steps. 0 for the difference that a correction makes. */
  readonly count: number;
  /** Their models and accounts, each once, in the order of their first attempts. */
  readonly places: readonly FoldedAttempts[];
}

/** Attempts on one model and account. Their figures count no Steps. */
export interface FoldedAttempts extends HourPlace {
  readonly figures: FewFigures;
}

type Names = readonly [
  callers: readonly (readonly [
    ...names: [userId: string, keyId: string, keyLabel: string],
    source: HourCaller["source"],
    dataClass: string,
    outcome: HourCaller["outcome"],
  ])[],
  places: readonly (readonly [
    ...names: [gateway: string, vendor: string, model: string],
    connection: HourPlace["connection"],
  ])[],
];

/** Packs groups of Steps that opened within an hour. */
export function packSteps(hour: number, folded: readonly FoldedSteps[]): PackedSteps {
  const callers = createIndex(folded.map(callerNames));
  const places = createIndex(folded.flatMap((group) => group.places.map(placeNames)));
  const bytes: number[] = [];
  for (const group of folded) {
    write(bytes, callers.indexOf(callerNames(group)));
    write(bytes, group.openedAt - hour);
    write(bytes, withSign(Math.abs(group.count), group.count));
    write(bytes, group.places.length);
    for (const place of group.places) {
      const { figures } = place;
      write(bytes, places.indexOf(placeNames(place)));
      write(bytes, figures.length / 2);
      for (let at = 0; at < figures.length; at += 2) {
        const amount = figures[at + 1] ?? 0;
        write(bytes, withSign(figures[at] ?? 0, amount));
        write(bytes, Math.abs(amount));
      }
    }
  }
  return { names: `[${callers.json},${places.json}]`, figures: Uint8Array.from(bytes) };
}

function callerNames(caller: FoldedSteps): Names[0][number] {
  const { userId, keyId, keyLabel, source, dataClass, outcome } = caller;
  return [userId, keyId, keyLabel, source, dataClass, outcome];
}

function placeNames({ gateway, vendor, model, connection }: FoldedAttempts): Names[1][number] {
  return [gateway, vendor, model, connection];
}

/** The names that the groups of an hour refer to by index. */
export function namesIn({
  organizationId,
  names,
}: Pick<PackedSteps, "names"> & Pick<HourCaller, "organizationId">): {
  readonly callers: readonly HourCaller[];
  readonly places: readonly HourPlace[];
} {
  const [callers, places]: Names = JSON.parse(names);
  return {
    callers: callers.map(([userId, keyId, keyLabel, source, dataClass, outcome]) => {
      return { organizationId, userId, keyId, keyLabel, source, dataClass, outcome };
    }),
    places: places.map(([gateway, vendor, model, connection]) => {
      return { gateway, vendor, model, connection };
    }),
  };
}

/** Takes the groups of an hour one after the other. */
export interface GroupReader {
  /** A group begins. */
  steps(caller: number, afterHour: number, count: number): void;
  /** Where to add the figures of the group's next place; null skips them. */
  place(place: number): Figures | null;
}

/** @throws TypeError if the bytes are damaged */
export function readPacked({ figures }: Pick<PackedSteps, "figures">, reader: GroupReader): void {
  const bytes = new ByteReader(figures);
  while (!bytes.isAtEnd) {
    reader.steps(bytes.number(), bytes.number(), signed(bytes.number()));
    for (let places = bytes.number(); places > 0; places--) {
      const sums = reader.place(bytes.number());
      for (let count = bytes.number(); count > 0; count--) {
        const position = bytes.number();
        const amount = bytes.number();
        if (sums === null) continue;
        const at = position >> 1;
        sums[at] = (sums[at] ?? 0) + ((position & 1) === 1 ? -amount : amount);
      }
    }
  }
}

function withSign(value: number, of: number): number {
  return value * 2 + (of < 0 ? 1 : 0);
}

function signed(value: number): number {
  const size = Math.floor(value / 2);
  return value % 2 === 1 ? -size : size;
}

function write(bytes: number[], value: number): void {
  let rest = value;
  for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push((rest % 128) + 128);
  bytes.push(rest);
}

class ByteReader {
  readonly #bytes: Uint8Array;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  get isAtEnd(): boolean {
    return this.#at >= this.#bytes.length;
  }

  number(): number {
    const first = this.#byte();
    if (first < 128) return first;
    let value = first - 128;
    for (let unit = 128; ; unit *= 128) {
      const byte = this.#byte();
      if (byte < 128) return value + byte * unit;
      value += (byte - 128) * unit;
    }
  }

  #byte(): number {
    return this.#bytes[this.#at++] ?? damaged();
  }
}

/**
 * The caller or place that a group names.
 * @throws TypeError if it isn't among the names
 */
export function entryOf<Value>(values: readonly Value[], at: number): Value {
  const value = values[at];
  return value === undefined ? damaged() : value;
}

function damaged(): never {
  throw new TypeError("hourly sums are damaged");
}

/** Names, each once, in the order of their JSON. */
function createIndex<Value>(all: readonly Value[]) {
  const names = [...new Set(all.map((value) => JSON.stringify(value)))].sort();
  const places = new Map(names.map((name, at) => [name, at]));
  return {
    json: `[${names.join(",")}]`,
    indexOf: (value: Value): number => places.get(JSON.stringify(value)) ?? damaged(),
  };
}
