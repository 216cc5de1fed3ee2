import type { LapsedStep, StepSettlement } from "../contracts/step-verbs.ts";
import type { Attempt } from "../domain/step.ts";
import { sumsOf } from "../domain/step-sums.ts";
import { settledLeaf } from "../evidence/leaves.ts";
import { meterInterrupted } from "../evidence/meter.ts";
import { leaseClockOf } from "./lease-clock.ts";
import type { Line } from "./line.ts";

const pageSize = 100;

/**
 * Settles the Steps that no process will settle any more as `interrupted`, and says how many. Any process may run it,
 * and several at once: a Step is settled once.
 */
export async function recoverSteps(line: Line): Promise<number> {
  let recovered = 0;
  for (;;) {
    const time = { at: line.clock.now(), clock: leaseClockOf(line) };
    const lapsed = await line.store.lapsedSteps({ ...time, limit: pageSize });
    const results = await Promise.all(lapsed.map((step) => recover(line, step)));
    const settled = results.filter(Boolean).length;
    recovered += settled;
    // A page on which nothing could be settled would only come back.
    if (lapsed.length < pageSize || settled === 0) return recovered;
  }
}

async function recover(line: Line, { step, outputTokens }: LapsedStep): Promise<boolean> {
  const running = step.attempts.at(-1);
  if (!running) return false;
  const settlement = interruption(line, { step, running, outputTokens });
  const { settled } = await line.store.settleStep({
    ...settlement,
    leaf: settledLeaf(line.ids.uuid(), settlement),
  });
  if (settled) {
    line.notify({
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
  line: Line,
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
  const at = line.clock.now();
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
