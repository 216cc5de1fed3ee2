import { type Gateway, GatewayError, type GatewayEvent, type StepRecord } from "@tollgate/core";

/** What observers are told of a Step's end. */
export type SettledEvent = Extract<GatewayEvent, { type: "step.settled" }>;

/**
 * Requires that every Step was told of once, with the outcome, the reason and the sums that its record has; corrections
 * come after its end, so what was recorded before them counts. Steps that retention removed have no record any more.
 */
export async function requireMatchingEvents(
  gateway: Gateway,
  events: readonly SettledEvent[],
): Promise<void> {
  const reported = new Set<string>();
  for (const event of events) {
    const { organizationId, stepId: id, outcome, reason, totalTokens, costNanoUsd } = event;
    const name = `${organizationId} ${id}`;
    if (reported.has(name)) throw new Error(`observers were told of Step ${id} twice`);
    reported.add(name);
    const step = await stepOrNull(gateway, { organizationId, id });
    if (step === null) continue;
    const ended = step.attempts.map((attempt) => attempt.recorded ?? attempt);
    const costs = ended.map((attempt) => attempt.costNanoUsd);
    const recorded = {
      outcome: step.outcome,
      reason: step.reason,
      totalTokens: ended.reduce((sum, attempt) => sum + attempt.totalTokens, 0),
      costNanoUsd: costs.includes(null)
        ? null
        : costs.reduce<number>((sum, cost) => sum + (cost ?? 0), 0),
    };
    const seen = { outcome, reason, totalTokens, costNanoUsd };
    if (JSON.stringify(seen) !== JSON.stringify(recorded))
      throw new Error(
        `Step ${id}: observers were told ${JSON.stringify(seen)}, recorded is ${JSON.stringify(recorded)}`,
      );
  }
}

async function stepOrNull(
  gateway: Gateway,
  of: { readonly organizationId: string; readonly id: string },
): Promise<StepRecord | null> {
  try {
    return await gateway.steps.get(of);
  } catch (error) {
    if (error instanceof GatewayError && error.code === "step_not_found") return null;
    throw error;
  }
}
