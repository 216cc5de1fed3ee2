import type { StepSweep, SweepResult } from "@tollgate/core/store";
import { sweepSteps as sweepRest } from "@tollgate/store-engine";
import type { Database } from "../database/database.ts";
import { dropPartition } from "../partitions/drop-partition.ts";
import { makePartitions } from "../partitions/make-partitions.ts";
import { sweeping } from "../statements/locking.ts";

/** Removes Steps by whole partitions, and row by row those that are in none. */
export async function sweepSteps(database: Database, sweep: StepSweep): Promise<SweepResult> {
  if (database.mayRearrange) {
    await makePartitions(database, sweep.keep);
    const dropped = await dropPartition(database, sweep);
    if (dropped !== null) return { removed: dropped, more: true };
  }
  return database.driver.alone((view) => sweepRest(view, sweep), sweeping);
}
