import { durable } from "./durable.ts";
import type { Line } from "./line.ts";

const chunk = 100;

/** Removes the stored responses that expired, a bounded chunk at a time, and says how many. Safe from any process. */
export async function sweepResponses(line: Line): Promise<number> {
  let removed = 0;
  for (;;) {
    const count = await durable(line.store.responses.sweep({ at: line.clock.now(), limit: chunk }));
    removed += count;
    if (count < chunk) return removed;
  }
}
