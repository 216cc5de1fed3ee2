import type { BudgetCounterKey, EvidenceLeaf, Hold } from "@tollgate/core/store";
import type { StoreDump } from "./dump.ts";
import { type Facts, factsOf, leafFacts, leafHolds } from "./leaf-facts.ts";

interface Account {
  readonly hold: Hold;
  settled: number;
  held: number;
  /** The amount charged beyond the hold, if a provider used more than its limit. */
  overage: number;
}

interface Charge {
  usd: number;
  tokens: number;
}

/** A Step's holds, and the charge of its attempts under them so far. */
interface StepAccount extends Charge {
  holds: readonly Hold[];
  /** Each ended attempt by its number, after its last correction. */
  readonly ended: Map<unknown, Charge & { readonly holds: readonly Hold[] }>;
}

/**
 * Replays all holds, charges and corrections of the evidence in order. Checks that settled and held amounts never exceed the
 * limit of a hard budget, except where a provider used more than was held, and that the counters equal the sums at the end.
 */
export function checkBudgets({ leaves, counters }: StoreDump): readonly string[] {
  const accounts = new Map<string, Account>();
  const steps = new Map<string, StepAccount>();
  const problems = leaves.flatMap((leaf) => replay(leaf, accounts, steps));
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
  steps: Map<string, StepAccount>,
): string[] {
  const facts = leafFacts(leaf);
  const id = String(facts["step"]);
  const step = steps.get(id) ?? { holds: [], usd: 0, tokens: 0, ended: new Map() };
  steps.set(id, step);
  switch (leaf.kind) {
    case "step.opened":
      return applyHolds(leaf, step, accounts);
    case "attempt.opened":
      charge(step, facts["ended"]);
      if (facts["holds"] === null) return [];
      settle(step, accounts);
      return applyHolds(leaf, step, accounts);
    case "step.settled":
      charge(step, facts["attempt"]);
      settle(step, accounts);
      return [];
    case "correction":
      correct(step, facts, accounts);
      return [];
    default:
      return [];
  }
}

function applyHolds(
  leaf: EvidenceLeaf,
  step: StepAccount,
  accounts: Map<string, Account>,
): string[] {
  // Rate limits recover with time, so no ledger records their use.
  step.holds = leafHolds(leaf).filter(({ unit }) => !unit.endsWith("_pace"));
  return step.holds.flatMap((hold) => {
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

function charge(step: StepAccount, attempt: unknown): void {
  const { number, costNanoUsd, usage } = factsOf(attempt);
  const usd = Number(costNanoUsd ?? 0);
  const tokens = Number(factsOf(usage)["totalTokens"] ?? 0);
  step.usd += usd;
  step.tokens += tokens;
  step.ended.set(number, { holds: step.holds, usd, tokens });
}

/** A correction changes the counters that its attempt was charged to. Figures it doesn't give stay as they are. */
function correct(
  { ended }: StepAccount,
  { attempt, costNanoUsd, usage }: Facts,
  accounts: ReadonlyMap<string, Account>,
): void {
  const before = ended.get(attempt);
  if (!before) return;
  const usd = Number(costNanoUsd ?? before.usd);
  const tokens = Number(factsOf(usage)["totalTokens"] ?? before.tokens);
  ended.set(attempt, { ...before, usd, tokens });
  for (const hold of before.holds) {
    const account = accounts.get(counterName(hold));
    if (account && hold.unit === "usd") account.settled += usd - before.usd;
    if (account && hold.unit === "tokens") account.settled += tokens - before.tokens;
  }
}

function settle(step: StepAccount, accounts: Map<string, Account>): void {
  for (const hold of step.holds) {
    const account = accounts.get(counterName(hold));
    if (!account) continue;
    const { requests, usd, tokens } = { ...step, requests: hold.amount };
    const spent = { requests, usd, tokens, steps: 0, requests_pace: 0, tokens_pace: 0 }[hold.unit];
    account.held -= hold.amount;
    account.settled += spent;
    account.overage += Math.max(0, spent - hold.amount);
  }
  step.holds = [];
  step.usd = 0;
  step.tokens = 0;
}

function counterName({ budgetId, subject, periodStart }: BudgetCounterKey): string {
  return JSON.stringify([budgetId, subject, periodStart]);
}
