import type { KeyPatch } from "../contracts/key-repository.ts";
import type { ApiKey } from "../domain/api-key.ts";
import type { EvidenceLeaf, LeafKind } from "../domain/evidence-leaf.ts";
import { createLeaf } from "../evidence/leaves.ts";
import { sha256Hex } from "../kernel/digest.ts";
import type { GatewayContext } from "../pipeline/context.ts";
import type { WithActor } from "./key-records.ts";

/** The leaf of a change of a key. A label is free text: only its digest is evidence. */
export function keyLeaf(
  { ids, clock }: Pick<GatewayContext, "ids" | "clock">,
  kind: LeafKind,
  { organizationId, id }: Pick<ApiKey, "organizationId" | "id">,
  { actor, label, models, ...facts }: KeyPatch & WithActor,
): EvidenceLeaf {
  return createLeaf(
    { id: ids.uuid(), organizationId, kind, at: clock.now() },
    {
      actor: actor ?? null,
      key: id,
      ...facts,
      ...(models === undefined ? {} : { models: models && [...models] }),
      ...(label === undefined ? {} : { labelSha256: sha256Hex(label) }),
    },
  );
}
