import type { LapsedStep, StepSettlement } from "../contracts/step-verbs.ts";
import type { Attempt } from "../domain/step.ts";
import { sumsOf } from "../domain/step-sums.ts";
import { settledLeaf } from "../evidence/leaves.ts";
import { meterInterrupted } from "../evidence/meter.ts";
import type { GatewayContext } from "./context.ts";
import { leaseClockOf } from "./lease-clock.ts";

const pageSize = 100;

/**
 * Settles the Steps that no process will settle any more as `interrupted`, and says how many. Any process may run it,
 * and several at once: a Step is settled once.
 */
export async function recoverSteps(context: GatewayContext): Promise<number> {
  let recovered = 0;
  for (;;) {
    const time = { at: context.clock.now(), clock: leaseClockOf(context) };
    const lapsed = await context.store.lapsedSteps({ ...time, limit: pageSize });
    const results = await Promise.all(lapsed.map((step) => recover(context, step)));
    const settled = results.filter(Boolean).length;
    recovered += settled;
    // A page on which nothing could be settled would only come back.
    if (lapsed.length < pageSize || settled === 0) return recovered;
  }
}

async function recover(
  context: GatewayContext,
  { step, outputTokens }: LapsedStep,
): Promise<boolean> {
  const running = step.attempts.at(-1);
  if (!running) return false;
  const settlement = interruption(context, { step, running, outputTokens });
  const { settled } = await context.store.settleStep({
    ...settlement,
    leaf: settledLeaf(context.ids.uuid(), settlement),
  });
  if (settled) {
    context.notify({
      type: "step.settled",
      at: settlement.at,
      organizationId: step.organizationId,
      stepId: step.id,
      outcome: "interrupted",
      reason: settlement.reason,
      ...sumsOf([...step.attempts.flatMap(({ end }) => end ?? []), settlement.attempt]),
      durationMs: settlement.at - step.openedAt,
    });
  }
  return settled;
}

function interruption(
  context: GatewayContext,
  {
    step,
    running,
    outputTokens,
  }: {
    readonly step: LapsedStep["step"];
    readonly running: Attempt;
    readonly outputTokens: number | null;
  },
): Omit<StepSettlement, "leaf"> {
  const at = context.clock.now();
  return {
    organizationId: step.organizationId,
    stepId: step.id,
    at,
    outcome: "interrupted",
    reason: "process_lost",
    finishReason: null,
    attempt: meterInterrupted(running, {
      outputTokens,
      durationMs: Math.max(0, at - running.startedAt),
    }),
    reply: null,
    reasoning: null,
    response: null,
  };
}
