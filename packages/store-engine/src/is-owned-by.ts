import type { Owner } from "@tollgate/core/store";

/** Whether a record is this organization's, user's and key's. */
export function isOwnedBy(owner: Owner, record: Owner): boolean {
  return (
    record.organizationId === owner.organizationId &&
    record.userId === owner.userId &&
    record.keyId === owner.keyId
  );
}
