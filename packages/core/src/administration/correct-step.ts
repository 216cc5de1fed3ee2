import type { CorrectionIntent } from "../contracts/step-verbs.ts";
import type { Step } from "../domain/step.ts";
import {
  eachDetail,
  fittingDetails,
  type Usage,
  type UsageDetails,
  usageDetails,
} from "../domain/usage.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import { createLeaf } from "../evidence/leaves.ts";
import { sha256Hex } from "../kernel/digest.ts";
import type { Line } from "../pipeline/line.ts";
import type { Acting } from "./key-records.ts";
import { requireId } from "./tenant.ts";

/** Tokens as a correction gives them; the total is their sum, and a detail is a part of its count. */
export interface CorrectedUsage extends UsageDetails {
  readonly promptTokens: number;
  readonly completionTokens: number;
}

/** A correction of what one attempt used or cost. At least one figure is given; the other stays as it stands. */
export interface StepCorrection extends Acting {
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
  { ids, clock }: Line,
  step: Step,
  correction: StepCorrection,
): CorrectionIntent {
  const { organizationId, id: stepId } = step;
  const draft = {
    id: ids.uuid(),
    at: clock.now(),
    attempt: correction.attempt ?? step.attempts.at(-1)?.number ?? 1,
    ...requireFigures(correction),
    reason: requireId("reason", correction.reason),
    actor: correction.actor === undefined ? null : requireId("actor", correction.actor),
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

function requireFigures({ usage, costNanoUsd }: StepCorrection): {
  readonly usage: Usage | null;
  readonly costNanoUsd: number | null;
} {
  if (usage === undefined && costNanoUsd === undefined)
    throw wrong("usage", "A correction gives usage, costNanoUsd or both.");
  if (costNanoUsd !== undefined && !isCount(costNanoUsd))
    throw wrong("costNanoUsd", "costNanoUsd must be a safe integer from 0.");
  return {
    usage: usage === undefined ? null : requireUsage(usage),
    costNanoUsd: costNanoUsd ?? null,
  };
}

const usageMembers: readonly string[] = ["promptTokens", "completionTokens", ...usageDetails];

function requireUsage(usage: CorrectedUsage): Usage {
  const isUsage =
    typeof usage === "object" &&
    usage !== null &&
    Object.keys(usage).every((name) => usageMembers.includes(name));
  if (!isUsage) throw wrong("usage", `usage takes ${usageMembers.join(", ")}.`);
  const { promptTokens, completionTokens } = usage;
  const totalTokens = promptTokens + completionTokens;
  if (![promptTokens, completionTokens, totalTokens].every((count) => isCount(count)))
    throw wrong("usage", "promptTokens and completionTokens must be safe integers from 0.");
  const details = eachDetail((name) => usage[name]);
  const fitting = fittingDetails(details, usage);
  const wrongPart = usageDetails.find(
    (name) =>
      details[name] !== undefined && (!isCount(details[name]) || fitting[name] === undefined),
  );
  if (wrongPart !== undefined)
    throw wrong(
      "usage",
      `${wrongPart} must be a safe integer from 0, and together with the other details at most the tokens it is a part of.`,
    );
  return { promptTokens, completionTokens, totalTokens, ...details };
}

function isCount(figure: unknown): boolean {
  return typeof figure === "number" && Number.isSafeInteger(figure) && figure >= 0;
}

function wrong(param: string, message: string): GatewayError {
  return new GatewayError("invalid_argument", message, { param });
}
