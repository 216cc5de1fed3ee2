import type { Workload } from "./load-order.ts";

/** One kind of load and its duration in seconds. */
export interface Load {
  readonly workload: Workload;
  readonly concurrency: number;
  /** The time before measuring; 0 measures from the first request on. */
  readonly warmUpSeconds: number;
  readonly seconds: number;
  readonly spreadSeconds?: number;
}

/** A load of the standard table. */
export interface Scenario extends Load {
  readonly name: "first 5 s" | "plain" | "32 in flight" | "alone" | "burst" | "paced";
  /** Whether only targets with a database server run it. */
  readonly databaseOnly?: boolean;
}

/** A load in the table of cells, compared with `base`. Its process has answered plain requests before. */
export interface Cell extends Load {
  /** The name for `--cells`. */
  readonly name: string;
  /** The number of keys to use in turn. Default: 1. */
  readonly keys?: number;
  /** Whether an observer receives every event. */
  readonly observed?: boolean;
  /** Whether some answers may fail. */
  readonly fails?: boolean;
}

/** The last part of the model's name: tells the upstream how to answer. */
export type Model = "plain" | "burst" | "paced" | "slow" | "flaky" | "tools";

export const models: readonly Model[] = ["plain", "burst", "paced", "slow", "flaky", "tools"];

/** Events of a streamed answer, `[DONE]` included, and how many of them carry text. */
export const eventsPerStream = 104;
export const textEvents = 100;
/** The time between two events of a paced stream. */
export const millisecondsPerEvent = { paced: 5, slow: 100 } as const;

/** The text in every event of the upstream and in every plain answer. */
export const marker = "all the king's horses";

const plain: Workload = { kind: "single", model: "plain" };

/** All run in this order in one process. The first begins after the first answer of the process. */
export const scenarios: readonly Scenario[] = [
  { name: "first 5 s", workload: plain, concurrency: 64, warmUpSeconds: 0, seconds: 5 },
  { name: "plain", workload: plain, concurrency: 64, warmUpSeconds: 25, seconds: 5 },
  {
    name: "32 in flight",
    workload: plain,
    concurrency: 32,
    warmUpSeconds: 0.5,
    seconds: 3,
    databaseOnly: true,
  },
  { name: "alone", workload: plain, concurrency: 1, warmUpSeconds: 0.2, seconds: 1.5 },
  {
    name: "burst",
    workload: { kind: "single", model: "burst" },
    concurrency: 16,
    warmUpSeconds: 4,
    seconds: 3,
  },
  {
    name: "paced",
    workload: { kind: "single", model: "paced" },
    concurrency: 64,
    warmUpSeconds: 4,
    seconds: 4,
    spreadSeconds: 0.5,
  },
];

/** The time to warm up before the first cell. */
export const cellsWarmUp: Load = {
  workload: plain,
  concurrency: 64,
  warmUpSeconds: 0,
  seconds: 12,
};

const short = { concurrency: 64, warmUpSeconds: 2, seconds: 4 };
const alone = { concurrency: 1, warmUpSeconds: 2, seconds: 4 };
const long = { kind: "long", messages: 1_000 } as const;

export const cells: readonly Cell[] = [
  { name: "base", workload: plain, ...short },
  { name: "messages-5", workload: { kind: "growing", messages: 5 }, ...short },
  { name: "messages-50", workload: { kind: "growing", messages: 50 }, ...short },
  {
    name: "messages-1000",
    workload: { ...long, endpoint: "chat/completions", respelled: false },
    ...alone,
  },
  {
    name: "messages-1000-missed",
    workload: { ...long, endpoint: "chat/completions", respelled: true },
    ...alone,
  },
  {
    name: "messages-1000-responses",
    workload: { ...long, endpoint: "responses", respelled: false },
    ...alone,
  },
  {
    name: "non-ascii",
    workload: { kind: "single", model: "plain", nonAsciiBytes: 8_192 },
    ...short,
  },
  // A request without ids continues one of its key's 100 newest Sessions. 64 clients of one key could push one out.
  { name: "tools", workload: { kind: "tools" }, ...short, concurrency: 32 },
  { name: "responses", workload: { kind: "responses" }, ...short },
  { name: "keys", workload: plain, keys: 1_000, ...short },
  { name: "failures", workload: { kind: "single", model: "flaky" }, fails: true, ...short },
  { name: "observer", workload: plain, observed: true, ...short },
];

/** The cell with two processes, for stores that processes can share. */
export const twoProcesses = {
  name: "two-processes",
  lone: { workload: plain, concurrency: 64, warmUpSeconds: 2, seconds: 5 },
  both: { workload: plain, concurrency: 64, warmUpSeconds: 2, seconds: 5 },
} as const;

/** The name of its first part, in which one process gets all requests. */
export const oneBusy = `${twoProcesses.name} (one busy)`;

/** Many slow streams of ten events a second each, in a process that has answered a few streams before. */
export const manyStreams: { readonly warmUp: Load; readonly streams: Load } = {
  warmUp: {
    workload: { kind: "single", model: "burst" },
    concurrency: 8,
    warmUpSeconds: 0,
    seconds: 3,
  },
  streams: {
    workload: { kind: "single", model: "slow" },
    concurrency: 1_000,
    spreadSeconds: 2,
    warmUpSeconds: 0,
    seconds: 0,
  },
};
