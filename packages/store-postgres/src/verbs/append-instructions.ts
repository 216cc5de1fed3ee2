import type { StepIntent } from "@tollgate/core/store";
import { instructionsPosition, opening } from "@tollgate/store-sql";
import type { Transaction } from "../database/transaction.ts";

/** Records a request's instructions on its Step, beside the transcript. */
export async function appendInstructions(
  transaction: Transaction,
  { owner, stepId, instructions }: StepIntent,
  sessionId: string,
): Promise<void> {
  if (!instructions) return;
  await transaction.run(opening.insertPart, {
    organization_id: owner.organizationId,
    session_id: sessionId,
    position: instructionsPosition,
    step_id: stepId,
    kind: "instructions",
    count: 0,
    chain: new Uint8Array(),
    content: instructions.content,
    salt: instructions.contentSalt,
    commitment: instructions.contentCommitment,
  });
}
