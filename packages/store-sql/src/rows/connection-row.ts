import type { SealedConnection } from "@tollgate/core/store";
import { describeRow } from "./describe-row.ts";

/** The rows of connections. */
export const connectionRows = describeRow<SealedConnection>({
  id: "text",
  organizationId: "text",
  gateway: "text",
  createdAt: "integer",
  updatedAt: "integer",
  keyId: "text",
  wrappedKey: "bytes",
  credential: "bytes",
});
