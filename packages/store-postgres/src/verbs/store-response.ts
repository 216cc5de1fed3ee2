import { GatewayError, type ResponseDraft } from "@tollgate/core/store";
import { joinMessages, responding, responseToRow } from "@tollgate/store-sql";
import type { Transaction } from "../database/transaction.ts";
import { locking } from "../statements/locking.ts";
import type { RunningStep } from "./running-step.ts";

/** Stores a Step's response: linked to the one it continues, or with the messages before it if that is gone. */
export async function storeResponse(
  transaction: Transaction,
  step: RunningStep,
  draft: ResponseDraft,
): Promise<void> {
  requireOwn(step, draft);
  const builtOn = await standingPrevious(transaction, draft);
  const written = await transaction.run(responding.insert, {
    ...responseToRow(draft),
    built_on: builtOn,
    inherited: joinMessages(builtOn === null ? [draft.inherited] : []),
  });
  if (written === 0)
    throw new GatewayError("invalid_argument", "The id for a stored response is taken.");
}

function requireOwn({ id, owner }: RunningStep, draft: ResponseDraft): void {
  if (
    draft.stepId !== id ||
    draft.organizationId !== owner.organizationId ||
    draft.userId !== owner.userId ||
    draft.keyId !== owner.keyId
  )
    throw new GatewayError("invalid_argument", "The response is not its Step's and its owner's.");
}

/** The id of the response it continues, as long as that has a row. */
async function standingPrevious(
  transaction: Transaction,
  { organizationId, userId, keyId, previousResponseId }: ResponseDraft,
): Promise<string | null> {
  if (previousResponseId === null) return null;
  const row = await transaction.get(locking.standing, {
    organization_id: organizationId,
    user_id: userId,
    key_id: keyId,
    id: previousResponseId,
  });
  return row === undefined ? null : previousResponseId;
}
