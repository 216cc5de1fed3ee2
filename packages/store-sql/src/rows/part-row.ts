import type { PartRecord } from "@tollgate/store-engine";
import type { SqlParameters } from "../statement.ts";

/** The position of a Step's reply that did not join the transcript. */
const besidePosition = -1;
/** The position of its instructions. */
const instructionsPosition = -2;
/** The position of the reasoning that its client saw. */
const reasoningPosition = -3;

/** Every position outside the transcript, for a statement. */
export const positionsBeside: string = [
  besidePosition,
  instructionsPosition,
  reasoningPosition,
].join(", ");

/** The parts that a Step adds to its Session, as the parameters of their rows. */
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

/** A Step has at most one part of each kind, so the kind determines the position. */
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
