import type { Owner } from "@tollgate/core/store";

export function isOwnedBy(owner: Owner, row: Owner): boolean {
  return (
    row.organizationId === owner.organizationId &&
    row.userId === owner.userId &&
    row.keyId === owner.keyId
  );
}
