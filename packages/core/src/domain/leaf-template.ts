import { sha256Of } from "../kernel/digest.ts";
import type { EvidenceLeaf } from "./evidence-leaf.ts";

/** What only the store knows of an opened Step, and only inside its transaction. */
export interface StepAssignment {
  readonly sessionId: string;
  readonly turnId: string;
  readonly branchedFromSessionId: string | null;
  /** Messages of the request that the Session (or, for a branch, its origin) already had. */
  readonly commonLength: number;
  /** The new messages' commitment; null when nothing is new. */
  readonly contentCommitment: Uint8Array | null;
}

/** A leaf with one gap, `"assignment":{…}`, that the store fills when it opens the Step. */
export interface LeafTemplate extends Omit<EvidenceLeaf, "meta" | "hash"> {
  /** Canonical JSON up to and including `"assignment":`. */
  readonly before: string;
  /** The rest, from the comma or brace after the assignment. */
  readonly after: string;
}

/** Fills a template: the assignment is canonical JSON as well, so that any store writes the same bytes. */
export function fillLeaf(template: LeafTemplate, assignment: StepAssignment): EvidenceLeaf {
  const { id, organizationId, kind, at, before, after } = template;
  const { branchedFromSessionId, commonLength, contentCommitment, sessionId, turnId } = assignment;
  const filled = JSON.stringify({
    branchedFromSessionId,
    commonLength,
    contentCommitment: contentCommitment && Buffer.from(contentCommitment).toString("hex"),
    sessionId,
    turnId,
  });
  const meta = before + filled + after;
  return { id, organizationId, kind, at, meta, hash: leafHash(meta) };
}

/** SHA-256(0x00 ‖ meta), the leaf hash of RFC 6962. */
export function leafHash(meta: string): Buffer {
  return sha256Of(leafTag, meta);
}

/** SHA-256(0x02 ‖ salt ‖ bytes): says nothing about the content once the salt is gone. */
export function commitContent(salt: Uint8Array, content: Uint8Array): Buffer {
  return sha256Of(commitmentTag, salt, content);
}

const leafTag = Uint8Array.of(0);
const commitmentTag = Uint8Array.of(2);
