import { checkActivity } from "./activity.ts";
import { checkBudgets } from "./budgets.ts";
import type { StoreDump } from "./dump.ts";
import { checkEvidence } from "./evidence.ts";
import { checkLeases } from "./leases.ts";
import { checkTranscripts } from "./transcripts.ts";
import { checkUsage } from "./usage.ts";
import { checkUsageHours } from "./usage-hours.ts";

/** Checks everything that must always hold for a store. Returns one sentence per violation. */
export function checkDump(dump: StoreDump): readonly string[] {
  return [
    checkUsage,
    checkBudgets,
    checkLeases,
    checkEvidence,
    checkTranscripts,
    checkActivity,
    checkUsageHours,
  ].flatMap((check) => check(dump));
}
