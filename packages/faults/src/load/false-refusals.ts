import type { EvidenceLeaf, Hold } from "@tollgate/core/store";

/** How far back a request that was refused may have begun, in milliseconds. */
const longestRequest = 5_000;

interface Account {
  limit: number;
  /** What one request holds. */
  amount: number;
  /** What was settled and held after each leaf that changed it, and when. */
  readonly history: { readonly place: number; readonly at: number; readonly used: number }[];
}

/** What the leaves of one store say happened to a counter that counts each key. */
export interface RefusalCheck {
  readonly refusals: number;
  readonly falseRefusals: number;
}

/**
 * Looks at every refusal for a budget that counts each key. A refusal is false when the request would have fit at every
 * moment from its beginning to its record: what was settled and held, orphans included, and its amount, against the limit.
 */
export function checkRefusals(leaves: readonly EvidenceLeaf[]): RefusalCheck {
  const accounts = accountsOf(leaves);
  let [refusals, falseRefusals] = [0, 0];
  for (const [place, leaf] of leaves.entries()) {
    if (leaf.kind !== "decision") continue;
    refusals++;
    const account = accounts.get(String(factsOf(leaf)["key"]));
    if (account === undefined || fitsThroughout(account, place, leaf.at - longestRequest))
      falseRefusals++;
  }
  return { refusals, falseRefusals };
}

function fitsThroughout({ history, limit, amount }: Account, place: number, from: number): boolean {
  const before = history.filter((moment) => moment.place < place);
  const begin = before.findLastIndex(({ at }) => at < from);
  return before.slice(Math.max(0, begin)).every(({ used }) => used + amount <= limit);
}

function accountsOf(leaves: readonly EvidenceLeaf[]): ReadonlyMap<string, Account> {
  const accounts = new Map<string, Account>();
  const held = new Map<string, Hold>();
  const change = (key: string, place: number, at: number, by: number): void => {
    const history = accounts.get(key)?.history;
    history?.push({ place, at, used: (history.at(-1)?.used ?? 0) + by });
  };
  for (const [place, leaf] of leaves.entries()) {
    const facts = factsOf(leaf);
    const step = String(facts["step"]);
    if (leaf.kind === "step.opened") {
      const [hold] = holdsOf(facts["holds"]);
      if (hold === undefined) continue;
      held.set(step, hold);
      const { subject, limit, amount } = hold;
      if (!accounts.has(subject)) accounts.set(subject, { limit, amount, history: [] });
      change(subject, place, leaf.at, amount);
    } else if (leaf.kind === "step.settled") {
      const hold = held.get(step);
      const cost = Number(record(facts["attempt"])["costNanoUsd"] ?? 0);
      if (hold !== undefined) change(hold.subject, place, leaf.at, cost - hold.amount);
    }
  }
  return accounts;
}

function holdsOf(value: unknown): readonly Hold[] {
  return Array.isArray(value) ? value : [];
}

function factsOf({ meta }: EvidenceLeaf): Readonly<Record<string, unknown>> {
  return record(JSON.parse(meta));
}

function record(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null ? { ...value } : {};
}
