/** One way of asking, as load generator and upstream both know it. */
export interface Scenario {
  readonly name: "plain" | "alone" | "burst" | "paced";
  readonly concurrency: number;
  readonly seconds: number;
  readonly warmUpSeconds: number;
  readonly spreadSeconds: number;
  /** What the last part of the model's name is: tells the upstream how to answer. */
  readonly model: "plain" | "burst" | "paced";
}

/** Events of a streamed answer, `[DONE]` included, and how many of them carry text. */
export const eventsPerStream = 104;
export const textEvents = 100;
export const millisecondsPerEvent = 5;

/** Text that every event of the upstream carries, and that every plain answer carries. */
export const marker = "all the king's horses";

export const scenarios: readonly Scenario[] = [
  {
    name: "plain",
    model: "plain",
    concurrency: 64,
    seconds: 5,
    warmUpSeconds: 5,
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
    warmUpSeconds: 1,
    spreadSeconds: 0,
  },
  {
    name: "paced",
    model: "paced",
    concurrency: 64,
    seconds: 4,
    warmUpSeconds: 1.2,
    spreadSeconds: 0.5,
  },
];
