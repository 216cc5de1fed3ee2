import type { Budget, BudgetRaise } from "../domain/budget.ts";
import type { EvidenceLeaf, LeafKind } from "../domain/evidence-leaf.ts";
import { createLeaf } from "../evidence/leaves.ts";
import type { GatewayContext } from "../pipeline/context.ts";

/** The leaf of a change to a budget: in the log of its one organization, or in the log of no organization. */
export function budgetLeaf(
  { ids, clock }: GatewayContext,
  kind: LeafKind,
  {
    budget,
    raise,
    actor,
  }: {
    readonly budget: Budget;
    readonly raise?: BudgetRaise;
    readonly actor: string | undefined;
  },
): EvidenceLeaf {
  const { id, scope, unit, limit, period, mode, warnAt } = budget;
  const [only = "", ...others] = new Set([scope.organization ?? []].flat());
  const organizationId = others.length === 0 ? only : "";
  return createLeaf(
    { id: ids.uuid(), organizationId, kind, at: clock.now() },
    {
      actor: actor ?? null,
      budget: {
        id,
        limit,
        mode,
        period,
        scope: JSON.parse(JSON.stringify(scope)),
        unit,
        // Evidence holds whole numbers only.
        warnAt: warnAt.map(String),
      },
      ...(raise === undefined
        ? {}
        : { raise: { amount: raise.amount, at: raise.at, id: raise.id, until: raise.until } }),
    },
  );
}
