import type { CommittedContent } from "@tollgate/core/store";
import type { PartRecord } from "../records.ts";

/** Where content is in a transcript; null for what is recorded on its Step alone. */
export type PartPosition = Pick<PartRecord, "position" | "count" | "chain"> | null;

const noChain = new Uint8Array();

/** What a Step adds to its Session. */
export function partRecord(
  step: Pick<PartRecord, "organizationId" | "sessionId" | "stepId" | "kind">,
  { content, contentSalt, contentCommitment }: CommittedContent,
  place: PartPosition = null,
): PartRecord {
  return {
    organizationId: step.organizationId,
    sessionId: step.sessionId,
    stepId: step.stepId,
    kind: step.kind,
    position: place?.position ?? null,
    count: place?.count ?? 0,
    chain: place?.chain ?? noChain,
    content,
    contentSalt,
    contentCommitment,
  };
}
