import type { BudgetCounterKey, EvidenceLeaf, Hold } from "@tollgate/core/store";
import type { StoreDump } from "./dump.ts";
import { factsOf, leafFacts, leafHolds } from "./leaf-facts.ts";

interface Account {
  readonly hold: Hold;
  settled: number;
  held: number;
  /** The amount charged beyond the hold, if a provider used more than its limit. */
  overage: number;
}

interface OpenStep {
  holds: readonly Hold[];
  usd: number;
  tokens: number;
}

/**
 * Replays all holds and charges of the evidence in order. Checks that settled and held amounts never exceed the limit of
 * a hard budget, except for overage of a provider, and that the counters equal the sums at the end.
 */
export function checkBudgets({ leaves, counters }: StoreDump): readonly string[] {
  const accounts = new Map<string, Account>();
  const openSteps = new Map<string, OpenStep>();
  const problems = leaves.flatMap((leaf) => replay(leaf, accounts, openSteps));
  const known = new Map(counters.map((counter) => [counterName(counter), counter]));
  for (const [name, { settled, held }] of accounts) {
    const counter = known.get(name);
    if (counter?.settled !== settled || counter.held !== held)
      problems.push(
        `Counter ${name}: ${counter?.settled} settled and ${counter?.held} held, but its records say ${settled} and ${held}`,
      );
  }
  return problems;
}

function replay(
  leaf: EvidenceLeaf,
  accounts: Map<string, Account>,
  openSteps: Map<string, OpenStep>,
): string[] {
  const facts = leafFacts(leaf);
  const step = String(facts["step"]);
  const openStep = openSteps.get(step) ?? { holds: [], usd: 0, tokens: 0 };
  openSteps.set(step, openStep);
  switch (leaf.kind) {
    case "step.opened":
      return applyHolds(leaf, openStep, accounts);
    case "attempt.opened":
      charge(openStep, facts["ended"]);
      if (facts["holds"] === null) return [];
      settle(openStep, accounts);
      return applyHolds(leaf, openStep, accounts);
    case "step.settled":
      charge(openStep, facts["attempt"]);
      settle(openStep, accounts);
      return [];
    default:
      return [];
  }
}

function applyHolds(
  leaf: EvidenceLeaf,
  openStep: OpenStep,
  accounts: Map<string, Account>,
): string[] {
  // Rate limits recover with time, so no ledger records their use.
  openStep.holds = leafHolds(leaf).filter(({ unit }) => !unit.endsWith("_pace"));
  return openStep.holds.flatMap((hold) => {
    const name = counterName(hold);
    const account = accounts.get(name) ?? { hold, settled: 0, held: 0, overage: 0 };
    accounts.set(name, account);
    account.held += hold.amount;
    const used = account.settled + account.held - account.overage;
    return hold.mode === "soft" || used <= hold.limit
      ? []
      : [`Counter ${name}: ${used} settled and held against a limit of ${hold.limit}`];
  });
}

function charge(openStep: OpenStep, ended: unknown): void {
  const { costNanoUsd, usage } = factsOf(ended);
  openStep.usd += Number(costNanoUsd ?? 0);
  openStep.tokens += Number(factsOf(usage)["totalTokens"] ?? 0);
}

function settle(openStep: OpenStep, accounts: Map<string, Account>): void {
  for (const hold of openStep.holds) {
    const account = accounts.get(counterName(hold));
    if (!account) continue;
    const { requests, usd, tokens } = { ...openStep, requests: hold.amount };
    const spent = { requests, usd, tokens, steps: 0, requests_pace: 0, tokens_pace: 0 }[hold.unit];
    account.held -= hold.amount;
    account.settled += spent;
    account.overage += Math.max(0, spent - hold.amount);
  }
  openStep.holds = [];
  openStep.usd = 0;
  openStep.tokens = 0;
}

function counterName({ budgetId, subject, periodStart }: BudgetCounterKey): string {
  return JSON.stringify([budgetId, subject, periodStart]);
}
