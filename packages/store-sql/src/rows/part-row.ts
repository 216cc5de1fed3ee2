import type { PartRecord } from "@tollgate/store-engine";
import type { SqlParameters } from "../statement.ts";

/** Where the reply of a Step is that did not join the transcript, in the column of positions. */
const besidePosition = -1;
/** Where its instructions are. */
const instructionsPosition = -2;
/** Where the reasoning is that its client was shown. */
const reasoningPosition = -3;

/** Every position outside the transcript, for a statement. */
export const positionsBeside: string = [
  besidePosition,
  instructionsPosition,
  reasoningPosition,
].join(", ");

/** The columns of what a Step adds to its Session. */
export const partColumns = [
  "organization_id",
  "session_id",
  "position",
  "step_id",
  "kind",
  "count",
  "chain",
  "content",
  "salt",
  "commitment",
] as const;

/** What a Step adds to its Session as the parameters of its row. */
export function partToRow(part: PartRecord): SqlParameters {
  return {
    organization_id: part.organizationId,
    session_id: part.sessionId,
    position: part.position ?? positionOf(part.kind),
    step_id: part.stepId,
    kind: part.kind,
    count: part.count,
    chain: part.chain,
    content: part.content,
    salt: part.contentSalt,
    commitment: part.contentCommitment,
  };
}

/** A Step has one of each kind, so that the kind says where it is. */
function positionOf(kind: PartRecord["kind"]): number {
  switch (kind) {
    case "instructions":
      return instructionsPosition;
    case "reasoning":
      return reasoningPosition;
    default:
      return besidePosition;
  }
}
