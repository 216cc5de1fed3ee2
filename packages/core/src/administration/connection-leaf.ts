import type { CredentialPlace } from "../connections/vault.ts";
import type { EvidenceLeaf, LeafKind } from "../domain/evidence-leaf.ts";
import { createLeaf } from "../evidence/leaves.ts";
import type { Line } from "../pipeline/line.ts";

/** A leaf names the connection and who wraps its data key, and holds nothing that is sealed. */
export function connectionLeaf(
  { ids, clock }: Line,
  kind: LeafKind,
  {
    organizationId,
    gateway,
    id,
    keyId,
    actor,
  }: CredentialPlace & { readonly keyId: string; readonly actor: string | undefined },
): EvidenceLeaf {
  return createLeaf(
    { id: ids.uuid(), organizationId, kind, at: clock.now() },
    {
      actor: actor ?? null,
      connection: id,
      gateway,
      wrappedBy: keyId,
    },
  );
}
