import { setImmediate as turn } from "node:timers/promises";
import type { Attempt, Store } from "@tollgate/core/store";
import { countingIds, createTestGateway, manualClock } from "@tollgate/testing";
import type { EmptyStores } from "../stores/empty-stores.ts";
import { type ObservedStore, observeStore } from "../stores/observed-store.ts";
import { amountOf, type Bill, billedUpstream, maxInputRate, modelId } from "./billed-upstream.ts";
import type { Plan } from "./plan.ts";

/** "Call 3": 10 tokens by the documented estimate. */
const estimatedInput = 10;
const organizationId = "organization-1";

/**
 * Plays a plan on two gateways with one store, one of which dies, and compares the charges with the upstream's bills.
 * Returns the problems.
 */
export async function playPlan(stores: EmptyStores, plan: Plan): Promise<readonly string[]> {
  const opened = await stores.open();
  try {
    return await play(observeStore(opened.store), plan);
  } finally {
    await opened.drop();
  }
}

async function play({ store, untilIdle }: ObservedStore, plan: Plan): Promise<readonly string[]> {
  const clients = plan.calls.map(() => new AbortController());
  const dying = new Set<number>();
  const { provider, bills } = billedUpstream(plan, () => estimatedInput, {
    async before(number, index) {
      const { clientLeavesAt, processDiesAt } = plan.calls[number] ?? {};
      if (clientLeavesAt === index) {
        clients[number]?.abort(new Error("gone"));
        await turn();
      }
      if (processDiesAt === index) {
        dying.add(number);
        await new Promise(() => {});
      }
    },
  });
  const budgets = [
    ...(plan.tokens === null ? [] : [{ id: "tokens", limit: { tokens: plan.tokens } }]),
    ...(plan.nanoUsd === null ? [] : [{ id: "usd", limit: { usd: plan.nanoUsd / 1e9 } }]),
  ].map((budget) => ({ ...budget, period: "total" as const }));
  const { onDisconnect } = plan;
  const common = {
    store,
    providers: { up: provider },
    budgets,
    retries: { max: 0 },
    ...(onDisconnect === null ? {} : { onDisconnect }),
  };
  const doomed = await createTestGateway(common);
  const clock = manualClock();
  const living = await createTestGateway({ ...common, clock, ids: countingIds(1) });
  const asked = plan.calls.map(async ({ stream, cap, tier, processDiesAt }, number) => {
    const request = doomed.chat({
      model: modelId,
      stream,
      messages: [{ role: "user", content: `Call ${number}` }],
      ...(cap === null ? {} : { max_tokens: cap }),
      ...(tier === null ? {} : { service_tier: tier }),
    });
    const { gateway } = processDiesAt === null ? living : doomed;
    const signal = clients[number]?.signal ?? null;
    const answer = await gateway.fetch(new Request(request, { signal }));
    await answer.text();
  });
  void Promise.allSettled(asked);
  for (let count = 0; count < 4; count++) await untilIdle();
  // One lease renewal records the progress so far.
  if (plan.calls.some(({ renewedLease }) => renewedLease)) await doomed.clock.advance("5s");
  await untilIdle();
  for (let minute = 0; minute < 20; minute++) {
    await clock.advance("1m");
    await untilIdle();
    const { data } = await store.steps.list({ organizationId }, { cursor: null, limit: 100 });
    if (data.every(({ outcome }) => outcome !== null)) break;
  }
  return problemsOf(store, plan, bills);
}

async function problemsOf(
  store: Store,
  plan: Plan,
  bills: ReadonlyMap<number, Bill>,
): Promise<readonly string[]> {
  const page = { cursor: null, limit: 100 };
  const { data: steps } = await store.steps.list({ organizationId }, page);
  const problems: string[] = [];
  const allowed = { tokens: 0, usd: 0 };
  const owed = { tokens: 0, usd: 0 };
  for (const step of steps) {
    const number = await numberOf(store, step.id);
    const bill = bills.get(number);
    if (step.outcome === null) problems.push(`call ${number}: its Step stays open`);
    for (const attempt of step.attempts)
      problems.push(
        ...attemptProblems(attempt, bill, plan).map((text) => `call ${number}: ${text}`),
      );
    if (bill === undefined) continue;
    const unknown = isKnownToReason(plan, bill) ? 0 : Math.max(0, bill.output - bill.received);
    const underestimated = Math.max(0, bill.prompt - estimatedInput);
    allowed.tokens += underestimated + unknown;
    allowed.usd += underestimated * maxInputRate + unknown * 4_000;
    owed.tokens += bill.prompt + bill.output;
    owed.usd += amountOf(bill);
  }
  for (const [unit, limit] of [
    ["tokens", plan.tokens],
    ["usd", plan.nanoUsd],
  ] as const) {
    if (limit === null) continue;
    const { data } = await store.budgets.counters({ budgetId: unit }, page);
    const { settled = 0, held = 0 } = data[0] ?? {};
    if (held !== 0) problems.push(`${held} ${unit} stay held`);
    if (settled > limit + allowed[unit])
      problems.push(`${settled} ${unit} are settled against a limit of ${limit}`);
    if (owed[unit] > limit + allowed[unit])
      problems.push(`${owed[unit]} ${unit} are owed against a limit of ${limit}`);
  }
  return problems;
}

function isKnownToReason(plan: Plan, bill: Bill): boolean {
  return plan.reasons || bill.hasReasoned || !bill.isVisible;
}

function attemptProblems(
  { end, estimatedOutputTokens, price }: Attempt,
  bill: Bill | undefined,
  plan: Plan,
): readonly string[] {
  if (end === null) return ["an attempt stays open"];
  const { completionTokens, totalTokens } = end.usage;
  const cost = end.costNanoUsd ?? 0;
  // The process that sent the request may have died before it learned the outcome.
  if (bill === undefined)
    return end.outcome === "interrupted" || totalTokens === 0
      ? []
      : [`${totalTokens} tokens are charged for a call that was not sent`];
  if (end.usageBasis === "reported") {
    const exact = amountOf(bill);
    return bill.call.report === "whole" && cost === exact && completionTokens === bill.output
      ? []
      : [`${cost} nanodollars are charged for a bill of ${exact}`];
  }
  const minTokens = isKnownToReason(plan, bill)
    ? Math.max(bill.received, Math.min(bill.output, estimatedOutputTokens))
    : bill.received;
  const minCost = amountOf({
    ...bill,
    prompt: Math.min(bill.prompt, estimatedInput),
    output: minTokens,
    hidden: Math.min(bill.hidden, minTokens),
  });
  return [
    ...(completionTokens < minTokens
      ? [`${completionTokens} tokens are charged for at least ${minTokens}`]
      : []),
    ...(price !== null && cost < minCost ? [`${cost} nanodollars are charged for ${minCost}`] : []),
  ];
}

async function numberOf(store: Store, stepId: string): Promise<number> {
  const contents = await store.steps.contents(organizationId, stepId);
  const text = Buffer.from(contents?.request ?? []).toString();
  return Number(/Call (\d+)/.exec(text)?.[1]);
}
