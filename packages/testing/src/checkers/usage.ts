import type { Attempt, Step } from "@tollgate/core/store";
import type { StoreDump } from "./dump.ts";

/** Checks that every ended attempt has a consistent usage record, and that only a Step's last attempt is running. */
export function checkUsage({ steps }: StoreDump): readonly string[] {
  return steps.flatMap((step) => [
    ...step.attempts.flatMap((attempt, place) => attemptProblems(step, attempt, place)),
    ...stepProblems(step),
  ]);
}

function attemptProblems(step: Step, attempt: Attempt, place: number): readonly string[] {
  const at = `Step ${step.id}, attempt ${attempt.number}`;
  const isLast = place === step.attempts.length - 1;
  const numbered = attempt.number === place + 1 ? [] : [`${at}: it is number ${place + 1}`];
  const { end } = attempt;
  if (end === null) {
    const mayRun = isLast && step.outcome === null;
    return mayRun ? numbered : [...numbered, `${at}: it ended without a usage record`];
  }
  const { promptTokens, completionTokens, totalTokens } = end.usage;
  const sum = promptTokens + completionTokens;
  return [
    ...numbered,
    ...(isLast && step.outcome === null ? [`${at}: it ended, but its Step runs`] : []),
    ...(totalTokens === sum ? [] : [`${at}: ${totalTokens} tokens in total, but ${sum} in parts`]),
    ...(end.host === null && end.usageBasis === "reported" && totalTokens > 0
      ? [`${at}: tokens without a byte sent`]
      : []),
  ];
}

function stepProblems({ id, attempts, outcome }: Step): readonly string[] {
  if (attempts.length === 0) return [`Step ${id}: it has no attempt`];
  const last = attempts.at(-1)?.end?.outcome ?? null;
  return last === outcome ? [] : [`Step ${id}: ${outcome}, but its last attempt ${last}`];
}
