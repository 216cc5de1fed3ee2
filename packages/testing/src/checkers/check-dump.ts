import { checkActivity } from "./activity.ts";
import { checkBudgets } from "./budgets.ts";
import type { StoreDump } from "./dump.ts";
import { checkEvidence } from "./evidence.ts";
import { checkLeases } from "./leases.ts";
import { checkTranscripts } from "./transcripts.ts";
import { checkUsage } from "./usage.ts";

/** Everything that must hold of a store at any moment, one sentence for each place where it does not. */
export function checkDump(dump: StoreDump): readonly string[] {
  return [
    checkUsage,
    checkBudgets,
    checkLeases,
    checkEvidence,
    checkTranscripts,
    checkActivity,
  ].flatMap((check) => check(dump));
}
