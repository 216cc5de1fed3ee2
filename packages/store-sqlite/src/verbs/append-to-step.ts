import type { CommittedContent } from "@tollgate/core/store";
import { opening } from "@tollgate/store-sql";
import type { Transaction } from "../database/transaction.ts";

/** Records content on a Step, next to the transcript of its Session. */
export function appendToStep(
  transaction: Transaction,
  step: { readonly organizationId: string; readonly sessionId: string; readonly stepId: string },
  part: CommittedContent & { readonly position: number; readonly kind: string },
): void {
  transaction.run(opening.insertPart, {
    organization_id: step.organizationId,
    session_id: step.sessionId,
    position: part.position,
    step_id: step.stepId,
    kind: part.kind,
    count: 0,
    chain: new Uint8Array(),
    content: part.content,
    salt: part.contentSalt,
    commitment: part.contentCommitment,
  });
}
