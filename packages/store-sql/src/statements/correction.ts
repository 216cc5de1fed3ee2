import type { SqlDialect } from "../dialect.ts";
import { correctionColumns } from "../rows/correction-row.ts";

/** The corrections of some Steps of one organization, in the order they were written. */
export function correctionsOf(dialect: SqlDialect): string {
  return `SELECT ${correctionColumns.join(", ")} FROM corrections
    WHERE organization_id = :organization_id AND ${dialect.isOneOf("step_id", ":step_ids")}
    ORDER BY sequence`;
}
