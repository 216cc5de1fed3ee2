import type { ResponseView } from "@tollgate/store-engine";
import { readRow } from "../rows/row-reader.ts";
import { responseStatements } from "../statements/response.ts";
import type { Reads } from "./reads.ts";

/** What decisions read of stored responses, each time from the database. */
export function viewResponses({ get, all }: Reads): ResponseView {
  return {
    response(organizationId, id) {
      const row = get(responseStatements.response, { organization_id: organizationId, id });
      if (row === undefined) return null;
      const read = readRow(row);
      return {
        organizationId,
        userId: read.text("user_id"),
        keyId: read.text("key_id"),
        expiresAt: read.integer("expires_at"),
        builtOn: read.textOrNull("built_on"),
      };
    },
    messagesOf(organizationId, id) {
      const row = readRow(get(responseStatements.link, { organization_id: organizationId, id }));
      return { inherited: row.bytes("inherited"), messages: row.bytes("messages") };
    },
    continuations: (organizationId, id) =>
      all(responseStatements.continuations, { organization_id: organizationId, id }).map((row) =>
        readRow(row).text("id"),
      ),
    expiredResponses: (at, limit) =>
      all(responseStatements.expired, { at, limit }).map((row) => {
        const read = readRow(row);
        return { organizationId: read.text("organization_id"), id: read.text("id") };
      }),
  };
}
