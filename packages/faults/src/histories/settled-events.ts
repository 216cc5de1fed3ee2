import { type Gateway, GatewayError, type GatewayEvent, type StepRecord } from "@tollgate/core";

/** The event at the end of a Step. */
export type SettledEvent = Extract<GatewayEvent, { type: "step.settled" }>;

/**
 * Requires one event per Step, with the outcome, the reason and the sums of its record before corrections. Steps that
 * retention removed have no record.
 */
export async function requireMatchingEvents(
  gateway: Gateway,
  events: readonly SettledEvent[],
): Promise<void> {
  const reported = new Set<string>();
  for (const event of events) {
    const { organizationId, stepId: id, outcome, reason, totalTokens, costNanoUsd } = event;
    const name = `${organizationId} ${id}`;
    if (reported.has(name)) throw new Error(`Step ${id} has two events.`);
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
        `Step ${id}: the event says ${JSON.stringify(seen)}, but the record says ${JSON.stringify(recorded)}`,
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
