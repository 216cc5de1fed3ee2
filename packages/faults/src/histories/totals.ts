import { everyOrganization, type Gateway } from "@tollgate/core";
import type { UsageGroup } from "@tollgate/core/store";
import type { SettledEvent } from "./settled-events.ts";

/** Tokens and nanodollars by organization, of attempts with a known cost. */
export type Totals = ReadonlyMap<string, Figures>;

interface Figures {
  readonly tokens: number;
  readonly costNanoUsd: number;
}

/** The totals of all Steps that retention has left, with their corrections. */
export async function recordedTotals({ steps }: Gateway): Promise<Totals> {
  const { data } = await steps.list({ organizationId: everyOrganization }, { limit: 1_000 });
  return added(data.map((step) => [step.organizationId, figuresOf(step)]));
}

/** The totals of all Steps that ended, corrected or not, whether or not retention has removed them. */
export function toldTotals(events: readonly SettledEvent[]): Totals {
  return added(events.map((event) => [event.organizationId, figuresOf(event)]));
}

/** Requires that the hourly sums, with callers and without, add up to the events and the differences of all corrections. */
export function requireSameTotals(
  usage: readonly UsageGroup[],
  events: readonly SettledEvent[],
  corrections: readonly Totals[],
): void {
  const expected = added([toldTotals(events), ...corrections].flatMap((totals) => [...totals]));
  const summed = (hasCaller: boolean): Totals =>
    added(
      usage.flatMap(({ values: [organizationId, user], sums }) =>
        (user !== "") === hasCaller
          ? [[organizationId ?? "", { tokens: sums.totalTokens, costNanoUsd: sums.costNanoUsd }]]
          : [],
      ),
    );
  for (const found of [summed(true), summed(false)]) {
    const [wanted, got] = [described(expected), described(found)];
    if (wanted !== got) throw new Error(`events add up to ${wanted}, but hourly sums to ${got}`);
  }
}

/** The second totals minus the first. */
export function difference(before: Totals, after: Totals): Totals {
  const negative = [...before].map(
    ([organizationId, { tokens, costNanoUsd }]) =>
      [organizationId, { tokens: -tokens, costNanoUsd: -costNanoUsd }] as const,
  );
  return added([...negative, ...after]);
}

function added(parts: readonly (readonly [string, Figures])[]): Totals {
  const totals = new Map<string, Figures>();
  for (const [organizationId, { tokens, costNanoUsd }] of parts) {
    const total = totals.get(organizationId) ?? { tokens: 0, costNanoUsd: 0 };
    totals.set(organizationId, {
      tokens: total.tokens + tokens,
      costNanoUsd: total.costNanoUsd + costNanoUsd,
    });
  }
  return totals;
}

function figuresOf(of: {
  readonly totalTokens: number;
  readonly costNanoUsd: number | null;
}): Figures {
  return { tokens: of.totalTokens, costNanoUsd: of.costNanoUsd ?? 0 };
}

function described(totals: Totals): string {
  return JSON.stringify([...totals].sort(([a], [b]) => (a < b ? -1 : 1)));
}
