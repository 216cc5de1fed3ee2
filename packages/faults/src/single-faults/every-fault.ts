import type { EmptyStores } from "../stores/empty-stores.ts";
import type { CallFault } from "./nth-call.ts";
import type { Scenario } from "./scenarios.ts";
import { runTrial } from "./trial.ts";

/** What came of all faults of a scenario. */
export interface FaultRun {
  readonly faults: number;
  readonly problems: readonly string[];
}

const kinds: readonly Omit<CallFault, "nth">[] = [
  { action: "fail before", lasting: false },
  { action: "fail after", lasting: false },
  { action: "fail before", lasting: true },
  { action: "fail after", lasting: true },
  { action: "client leaves", lasting: false },
];

/**
 * Plays a scenario once without a fault, to learn its calls of the store, and then once for each call and kind of
 * fault; `every` takes only each so-manieth of those.
 */
export async function runEveryFault(
  stores: EmptyStores,
  scenario: Scenario,
  every = 1,
): Promise<FaultRun> {
  const { calls, problems } = await onEmptyStore(stores, scenario, null);
  const allProblems = [...problems];
  let faults = 0;
  const all = calls.flatMap((_, at) => kinds.map((kind) => ({ ...kind, nth: at + 1 })));
  for (const [index, fault] of all.entries()) {
    if (index % every !== 0) continue;
    faults++;
    const result = await onEmptyStore(stores, scenario, fault);
    const where = `${fault.action}, call ${fault.nth} (${calls[fault.nth - 1]})${fault.lasting ? " and later" : ""}`;
    allProblems.push(...result.problems.map((problem) => `${where}: ${problem}`));
  }
  return { faults, problems: allProblems };
}

async function onEmptyStore(stores: EmptyStores, scenario: Scenario, fault: CallFault | null) {
  const { store, drop } = await stores.open();
  try {
    return await runTrial(store, scenario, fault);
  } finally {
    await drop();
  }
}
