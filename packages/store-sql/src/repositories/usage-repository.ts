import type { UsageRepository } from "@tollgate/core/store";
import type { Conditions } from "../conditions.ts";
import type { SqlDialect } from "../dialect.ts";
import { lists } from "../lists.ts";
import { readRow } from "../rows/row-reader.ts";
import { type UnfoldedPaths, unfoldedFromRow } from "../rows/summed-row.ts";
import { usageRows } from "../rows/usage-row.ts";
import { all, anyway, get, run, type ScriptDatabase } from "../script.ts";
import { cursorAt, pageOf, selectPage } from "../select-page.ts";
import { unfoldedSteps } from "../summary-page.ts";
import { writes } from "../writes.ts";

const statements = {
  /** The cursor of the last Step that is in the sums. */
  mark: "SELECT mark FROM usage_marks WHERE organization_id = :organization_id",
  /** Sets the first mark, unless another process has set one. */
  first: `INSERT INTO usage_marks (organization_id, mark) VALUES (:organization_id, :mark)
    ON CONFLICT DO NOTHING`,
  /** Moves the mark, unless another process has moved it. */
  next: `UPDATE usage_marks SET mark = :mark
    WHERE organization_id = :organization_id AND mark = :after`,
} as const;

/** The sums by hour of a database. */
export function createUsageRepository(
  database: ScriptDatabase,
  dialect: SqlDialect,
  conditions: Conditions,
): UsageRepository {
  const unfolded = unfoldedSteps(dialect);
  return {
    mark: (organizationId) =>
      database.read(function* () {
        const row = yield* get(statements.mark, { organization_id: organizationId });
        return row === undefined ? null : readRow(row).text("mark");
      }),
    async steps({ organizationId, to }, { cursor, limit }) {
      const where = conditions.ofSteps({ organizationId, ...(to === undefined ? {} : { to }) });
      // A page reads one row more than its limit.
      const paging = { cursor, limit: limit - 1 };
      // Its text is constant: with a cursor or without, with `to` or without.
      const { text, parameters } = selectPage(unfolded, where, paging, dialect);
      const rows = await database.read(() => all(text, parameters));
      const paths: UnfoldedPaths = new Map();
      return {
        steps: rows.map((row) => unfoldedFromRow(row, organizationId, paths)),
        cursorOf: (index) => cursorAt(unfolded, rows[index]),
      };
    },
    add: ({ organizationId: organization_id, after, mark, hours }) =>
      database.write(function* () {
        const moved =
          after === null
            ? yield* run(statements.first, { organization_id, mark })
            : yield* run(statements.next, { organization_id, mark, after });
        if (moved === 0) return false;
        for (const hour of hours) yield* run(writes.usageHour.statement, usageRows.toRow(hour));
        return true;
      }, anyway),
    async hours(asked, paging) {
      // Its text is constant, too.
      const where = conditions.ofUsage(asked);
      const { text, parameters } = selectPage(lists.usage, where, paging, dialect);
      const rows = await database.read(() => all(text, parameters));
      return pageOf(lists.usage, rows, paging.limit, usageRows.fromRow);
    },
  };
}
