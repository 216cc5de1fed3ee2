import { hexOf, sha256Of } from "../kernel/digest.ts";
import type { EvidenceLeaf } from "./evidence-leaf.ts";

/** The facts about an opened Step that only the store knows, inside its transaction. */
export interface StepAssignment {
  readonly sessionId: string;
  readonly turnId: string;
  readonly branchedFromSessionId: string | null;
  /** How many of the request's messages the Session, or a branch's origin, already had. */
  readonly commonLength: number;
  /** The commitment to the new messages. Null if there are none. */
  readonly contentCommitment: Uint8Array | null;
}

/** A leaf with one gap, `"assignment":{…}`, that the store fills when it opens the Step. */
export interface LeafTemplate extends Omit<EvidenceLeaf, "meta" | "hash"> {
  /** Canonical JSON up to and including `"assignment":`. */
  readonly before: string;
  /** The rest, from the comma or brace after the assignment. */
  readonly after: string;
}

/**
 * Fills in a template; null for a Step without a transcript. The assignment is canonical JSON too, so every store writes the
 * same bytes.
 */
export function fillLeaf(template: LeafTemplate, assignment: StepAssignment | null): EvidenceLeaf {
  const { id, organizationId, kind, at, before, after } = template;
  const meta = before + (assignment === null ? "null" : assignmentJson(assignment)) + after;
  return { id, organizationId, kind, at, meta, hash: leafHash(meta) };
}

function assignmentJson(assignment: StepAssignment): string {
  const { branchedFromSessionId, commonLength, contentCommitment, sessionId, turnId } = assignment;
  const commitment = contentCommitment === null ? "null" : `"${hexOf(contentCommitment)}"`;
  return `{"branchedFromSessionId":${JSON.stringify(branchedFromSessionId)},"commonLength":${commonLength},"contentCommitment":${commitment},"sessionId":${JSON.stringify(sessionId)},"turnId":${JSON.stringify(turnId)}}`;
}

/** SHA-256(0x00 ‖ meta), the leaf hash of RFC 6962. */
export function leafHash(meta: string): Buffer {
  return sha256Of(leafTag, meta);
}

/** SHA-256(0x02 ‖ salt ‖ bytes). Once the salt is erased, it reveals nothing about the content. */
export function commitContent(salt: Uint8Array, content: Uint8Array): Buffer {
  return sha256Of(commitmentTag, salt, content);
}

const leafTag = Uint8Array.of(0);
const commitmentTag = Uint8Array.of(2);
