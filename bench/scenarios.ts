/** One way of asking, as load generator and upstream both know it. */
export interface Scenario {
  readonly name: "plain" | "alone" | "burst" | "paced";
  readonly concurrency: number;
  readonly seconds: number;
  readonly warmUpSeconds: number;
  readonly spreadSeconds: number;
  readonly model: Model;
}

/** What the last part of the model's name is: tells the upstream how to answer. */
export type Model = "plain" | "burst" | "paced" | "slow";

/** Events of a streamed answer, `[DONE]` included, and how many of them carry text. */
export const eventsPerStream = 104;
export const textEvents = 100;
/** How long the upstream waits between two events of a stream it does not send at once. */
export const millisecondsPerEvent = { paced: 5, slow: 100 } as const;

/** Text that every event of the upstream carries, and that every plain answer carries. */
export const marker = "all the king's horses";

export const scenarios: readonly Scenario[] = [
  {
    name: "plain",
    model: "plain",
    concurrency: 64,
    seconds: 5,
    warmUpSeconds: 12,
    spreadSeconds: 0,
  },
  {
    name: "alone",
    model: "plain",
    concurrency: 1,
    seconds: 1.5,
    warmUpSeconds: 0.2,
    spreadSeconds: 0,
  },
  {
    name: "burst",
    model: "burst",
    concurrency: 16,
    seconds: 3,
    warmUpSeconds: 4,
    spreadSeconds: 0,
  },
  {
    name: "paced",
    model: "paced",
    concurrency: 64,
    seconds: 4,
    warmUpSeconds: 4,
    spreadSeconds: 0.5,
  },
];

/** Many streams that say little: ten events a second each, once, in a process that has answered a few streams before. */
export const manyStreams = {
  concurrency: 1_000,
  spreadSeconds: 2,
  model: "slow",
  warmUp: { model: "burst", concurrency: 8, seconds: 3 },
} as const;
