import type { Refusal } from "@tollgate/core/store";
import { type Decision, unchanged } from "../change.ts";
import type { View } from "../view.ts";

/** Records a decision that let nothing happen, and its leaf, once. */
export function recordRefusal(view: View, { owner, decision, leaf }: Refusal): Decision<void> {
  if (view.hasDecision(owner.organizationId, decision.id)) return unchanged(undefined);
  return {
    result: undefined,
    change: [
      { write: "claim decision", row: { owner, decision } },
      { write: "insert leaf", row: leaf },
    ],
  };
}
