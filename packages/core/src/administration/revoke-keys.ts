import type { KeySelection } from "../contracts/key-repository.ts";
import type { ApiKey } from "../domain/api-key.ts";
import { read } from "../input/read.ts";
import type { GatewayContext } from "../pipeline/context.ts";
import { keyLeaf } from "./key-leaf.ts";
import {
  type KeyRecord,
  type KeyReference,
  type Keys,
  toKeyRecord,
  type UserKeysReference,
  type WithActor,
} from "./key-records.ts";
import { keyReference, keysOfUser } from "./schemas.ts";

/** Revocation of one key, or of all keys of a user. A key that is revoked already keeps the time of that. */
export function createRevoke(
  line: GatewayContext,
  find: (reference: KeyReference) => Promise<ApiKey>,
): Keys["revoke"] {
  async function revokeSelected(
    selection: KeySelection,
    { actor }: WithActor,
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

  async function revokeOfUser(reference: UserKeysReference): Promise<readonly KeyRecord[]> {
    const { organizationId, userId } = reference;
    return (await revokeSelected({ organizationId, userId }, reference)).map(toKeyRecord);
  }

  function revoke(reference: KeyReference): Promise<KeyRecord>;
  function revoke(reference: UserKeysReference): Promise<readonly KeyRecord[]>;
  async function revoke(
    reference: KeyReference | UserKeysReference,
  ): Promise<KeyRecord | readonly KeyRecord[]> {
    return isOfUser(reference)
      ? revokeOfUser(read(keysOfUser, reference))
      : revokeOne(read(keyReference, reference));
  }
  return revoke;
}

function isOfUser(reference: KeyReference | UserKeysReference): reference is UserKeysReference {
  return Object(reference).userId !== undefined;
}
