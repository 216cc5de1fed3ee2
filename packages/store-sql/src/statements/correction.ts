import type { SqlDialect } from "../dialect.ts";
import { columnsOf } from "../tables.ts";

/** The corrections of some Steps of one organization, in the order they were written. */
export function correctionsOf(dialect: SqlDialect): string {
  return `SELECT ${columnsOf("corrections").join(", ")} FROM corrections
    WHERE organization_id = :organization_id AND ${dialect.isOneOf("step_id", ":step_ids")}
    ORDER BY sequence`;
}
