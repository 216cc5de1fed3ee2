import { periodEnd } from "../budgets/period.ts";
import type { RefusedHold } from "../contracts/step-verbs.ts";
import { type Budget, type Hold, isBudgetUnit } from "../domain/budget.ts";
import type { Caller } from "../domain/caller.ts";
import type { DecisionRefusal, PolicyDecision } from "../domain/policy-decision.ts";
import type { Price } from "../domain/price.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import { refusalLeaf } from "../evidence/leaves.ts";
import type { GatewayContext } from "./context.ts";
import { orUnavailable } from "./durable.ts";

/** A decision that lets nothing happen, and what refused it; null where the policy did. */
interface Refused {
  readonly decision: PolicyDecision;
  readonly refusal: DecisionRefusal | null;
}

/** Records a decision that lets nothing happen. Denied is evidence too. */
export async function recordRefusal(
  context: GatewayContext,
  caller: Caller,
  { decision, refusal }: Refused,
): Promise<void> {
  const { organizationId, userId, keyId } = caller;
  const refused = {
    owner: { organizationId, userId, keyId },
    decision: { ...decision, refusal },
  };
  await orUnavailable(
    context.store.recordRefusal({ ...refused, leaf: refusalLeaf(context.ids.uuid(), refused) }),
  );
}

/** Records the refusal, tells the observers, and gives the error to throw. */
export async function refuse(
  context: GatewayContext,
  caller: Caller,
  { decision, refusal, error }: Refused & { readonly error: GatewayError },
): Promise<GatewayError> {
  await recordRefusal(context, caller, { decision, refusal });
  const { organizationId } = caller;
  context.notify({
    type: "request.denied",
    at: decision.at,
    organizationId,
    decisionId: decision.id,
    code: error.code,
    refusal,
  });
  return error;
}

export function policyDenied(decision: PolicyDecision): GatewayError {
  const rules = decision.rules.length === 0 ? "" : ` by rule ${decision.rules.join(", ")}`;
  const reason = decision.reason === undefined ? "." : `: ${decision.reason}`;
  return new GatewayError("policy_denied", `The policy denied this request${rules}${reason}`);
}

/** A hold that does not fit, as it is recorded. */
export function refusedByBudget({ hold, left }: RefusedHold): DecisionRefusal {
  const { budgetId, subject, unit, amount } = hold;
  if (!isBudgetUnit(unit)) throw new TypeError("a rate limit refused, and no budget");
  return { by: "budget", budgetId, subject, unit, needed: amount, left };
}

/** What has no price: the model, or the service tier of a model that has one. */
export function refusedByPrice({ price }: { readonly price: Price | null }) {
  return { by: "price", param: price === null ? "model" : "service_tier" } as const;
}

/** Names what has no price. */
export function priceUnknown(priced: { readonly price: Price | null }): GatewayError {
  const { param } = refusedByPrice(priced);
  const what = param === "model" ? "this model has no price" : "this service tier has no price";
  return new GatewayError(
    "price_unknown",
    `A budget in US dollars applies and ${what}, so the cost cannot be held.`,
    { param },
  );
}

/** Names the budget and when its period ends, nothing else. */
export function budgetExceeded(hold: Hold, budgets: readonly Budget[], now: number): GatewayError {
  const period = budgets.find((budget) => budget.id === hold.budgetId)?.period ?? "total";
  const end = periodEnd(period, hold.periodStart);
  const until =
    end === null ? "It does not reset." : `It resets at ${new Date(end).toISOString()}.`;
  const message = `The budget ${hold.budgetId} has too little left for this request. ${until}`;
  return new GatewayError("budget_exceeded", message, {
    headers:
      end === null ? {} : { "retry-after": String(Math.max(1, Math.ceil((end - now) / 1_000))) },
  });
}
