import type { CredentialPlace } from "../connections/credential-sealer.ts";
import type { EvidenceLeaf, LeafKind } from "../domain/evidence-leaf.ts";
import { createLeaf } from "../evidence/leaves.ts";
import type { GatewayContext } from "../pipeline/context.ts";

/** A leaf names the connection and who wraps its data key, and holds nothing that is sealed. */
export function connectionLeaf(
  { ids, clock }: GatewayContext,
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
