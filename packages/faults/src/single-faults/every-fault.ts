import type { FreshStores } from "../stores/fresh-stores.ts";
import type { CallFault } from "./nth-call.ts";
import type { Scenario } from "./scenarios.ts";
import { tryOnce } from "./trial.ts";

/** What came of all faults of a scenario. */
export interface Campaign {
  readonly faults: number;
  readonly problems: readonly string[];
}

const kinds: readonly Omit<CallFault, "nth">[] = [
  { does: "fail before", lasting: false },
  { does: "fail after", lasting: false },
  { does: "fail before", lasting: true },
  { does: "fail after", lasting: true },
  { does: "client leaves", lasting: false },
];

/**
 * Plays a scenario once without a fault, to learn its calls of the store, and then once for each call and kind of
 * fault; `every` takes only each so-manieth of those.
 */
export async function tryEvery(
  stores: FreshStores,
  scenario: Scenario,
  every = 1,
): Promise<Campaign> {
  const { calls, problems } = await onFresh(stores, scenario, null);
  const found = [...problems];
  let faults = 0;
  const all = calls.flatMap((_, at) => kinds.map((kind) => ({ ...kind, nth: at + 1 })));
  for (const [place, fault] of all.entries()) {
    if (place % every !== 0) continue;
    faults++;
    const verdict = await onFresh(stores, scenario, fault);
    const where = `${fault.does}, call ${fault.nth} (${calls[fault.nth - 1]})${fault.lasting ? " and later" : ""}`;
    found.push(...verdict.problems.map((problem) => `${where}: ${problem}`));
  }
  return { faults, problems: found };
}

async function onFresh(stores: FreshStores, scenario: Scenario, fault: CallFault | null) {
  const { store, drop } = await stores.open();
  try {
    return await tryOnce(store, scenario, fault);
  } finally {
    await drop();
  }
}
