import type { CorrectionIntent } from "../contracts/step-verbs.ts";
import type { Step } from "../domain/step.ts";
import {
  eachDetail,
  fittingDetails,
  type Usage,
  type UsageDetails,
  usageDetails,
} from "../domain/usage.ts";
import { createLeaf } from "../evidence/leaves.ts";
import { invalidInput, problemAt } from "../input/read.ts";
import { sha256Hex } from "../kernel/digest.ts";
import type { GatewayContext } from "../pipeline/context.ts";
import type { WithActor } from "./key-records.ts";

/** Tokens as a correction gives them; the total is their sum, and a detail is a part of its count. */
export interface CorrectedUsage extends UsageDetails {
  readonly promptTokens: number;
  readonly completionTokens: number;
}

/** A correction of what one attempt used or cost. At least one figure is given; the other stays as it stands. */
export interface StepCorrection extends WithActor {
  readonly organizationId: string;
  /** The Step's id. */
  readonly id: string;
  /** The attempt's number, from 1; default the last one. */
  readonly attempt?: number;
  readonly usage?: CorrectedUsage;
  /** Nanodollars, a safe integer from 0. */
  readonly costNanoUsd?: number;
  /** 1 to 255 characters; only its digest goes into the evidence. */
  readonly reason: string;
}

/** What the store is to write for a correction of a Step as it was read. */
export function correctionOf(
  { ids, clock }: GatewayContext,
  step: Step,
  correction: StepCorrection,
): CorrectionIntent {
  const { organizationId, id: stepId } = step;
  const draft = {
    id: ids.uuid(),
    at: clock.now(),
    attempt: correction.attempt ?? step.attempts.at(-1)?.number ?? 1,
    usage: correction.usage === undefined ? null : toUsage(correction.usage),
    costNanoUsd: correction.costNanoUsd ?? null,
    reason: correction.reason,
    actor: correction.actor ?? null,
  };
  const { reason, usage, at, ...facts } = draft;
  const leaf = createLeaf(
    { id: ids.uuid(), organizationId, kind: "correction", at },
    {
      actor: facts.actor,
      attempt: facts.attempt,
      correction: facts.id,
      costNanoUsd: facts.costNanoUsd,
      // A reason is free text: only its digest is evidence.
      reasonSha256: sha256Hex(reason),
      step: stepId,
      usage: usage && { ...usage },
    },
  );
  return { organizationId, stepId, correction: draft, leaf };
}

/** The schema knows each count; that the details are parts of their counts shows only together. */
function toUsage(usage: CorrectedUsage): Usage {
  const { promptTokens, completionTokens } = usage;
  const totalTokens = promptTokens + completionTokens;
  const details = eachDetail((name) => usage[name]);
  const fitting = fittingDetails(details, usage);
  const problems = [
    ...(Number.isSafeInteger(totalTokens)
      ? []
      : [problemAt("usage", "must add up to a safe integer")]),
    ...usageDetails
      .filter((name) => details[name] !== undefined && fitting[name] === undefined)
      .map((name) =>
        problemAt(
          `usage.${name}`,
          "must fit into the tokens it is a part of, with the other details",
        ),
      ),
  ];
  if (problems.length > 0) throw invalidInput(problems);
  return { promptTokens, completionTokens, totalTokens, ...details };
}
