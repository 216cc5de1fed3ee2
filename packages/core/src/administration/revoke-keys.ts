import type { KeySelection } from "../contracts/key-repository.ts";
import type { ApiKey } from "../domain/api-key.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import type { Line } from "../pipeline/line.ts";
import { keyLeaf } from "./key-leaf.ts";
import {
  type Acting,
  type KeyRecord,
  type KeyReference,
  type Keys,
  type KeysOfUser,
  toKeyRecord,
} from "./key-records.ts";
import { requireId } from "./tenant.ts";

/** Revocation of one key, or of all keys of a user. A key that is revoked already keeps the time of that. */
export function createRevoke(
  line: Line,
  find: (reference: KeyReference) => Promise<ApiKey>,
): Keys["revoke"] {
  async function revokeSelected(
    selection: KeySelection,
    { actor }: Acting,
  ): Promise<readonly ApiKey[]> {
    const revokedAt = line.clock.now();
    const facts = { revokedAt, ...(actor === undefined ? {} : { actor }) };
    return line.store.keys.change(selection, (key) =>
      key.revokedAt === null
        ? { patch: { revokedAt }, leaf: keyLeaf(line, "key.revoked", key, facts) }
        : null,
    );
  }

  async function revokeOne(reference: KeyReference): Promise<KeyRecord> {
    const { organizationId, id } = await find(reference);
    const [revoked] = await revokeSelected({ organizationId, id }, reference);
    return toKeyRecord(revoked ?? (await find(reference)));
  }

  async function revokeOfUser(reference: KeysOfUser): Promise<readonly KeyRecord[]> {
    const selection = {
      organizationId: requireId("organizationId", reference.organizationId),
      userId: requireId("userId", reference.userId),
    };
    return (await revokeSelected(selection, reference)).map(toKeyRecord);
  }

  function revoke(reference: KeyReference): Promise<KeyRecord>;
  function revoke(reference: KeysOfUser): Promise<readonly KeyRecord[]>;
  async function revoke(
    reference: KeyReference | KeysOfUser,
  ): Promise<KeyRecord | readonly KeyRecord[]> {
    if (!isOfUser(reference)) return revokeOne(reference);
    if (!("id" in reference) || reference.id === undefined) return revokeOfUser(reference);
    throw new GatewayError("invalid_argument", "Name a key by its id, or a user: not both.", {
      param: "userId",
    });
  }
  return revoke;
}

function isOfUser(reference: KeyReference | KeysOfUser): reference is KeysOfUser {
  return "userId" in reference && reference.userId !== undefined;
}
