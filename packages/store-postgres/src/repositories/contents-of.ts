import type { StepContents, Tenant } from "@tollgate/core/store";
import { contentsFromRows, reading, readRow } from "@tollgate/store-sql";
import type { Connection } from "../database/connection.ts";
import { readById } from "./read-by-id.ts";

const steps = { name: "steps", columns: ["organization_id", "id", "session_id", "length"] };

/** What one Step recorded; null when there is no such Step. */
export async function contentsOf(
  connection: Connection,
  organizationId: Tenant,
  id: string,
): Promise<StepContents | null> {
  const place = await readById(connection, steps, { organizationId, id }, readRow);
  if (!place) return null;
  const rows = await connection.all(reading.contents, {
    organization_id: place.text("organization_id"),
    session_id: place.text("session_id"),
    length: place.integer("length"),
    id,
  });
  return contentsFromRows(rows);
}
