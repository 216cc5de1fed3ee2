import type { UsageRepository } from "@tollgate/core/store";
import type { SqlDialect } from "../dialect.ts";
import { listed } from "../index-conditions.ts";
import { lists } from "../lists.ts";
import { readRow } from "../rows/row-reader.ts";
import { type UnfoldedPaths, unfoldedFromRow } from "../rows/summed-row.ts";
import { usageRows } from "../rows/usage-row.ts";
import { all, anyway, find, run } from "../script.ts";
import { cursorAt, pageOf, selectPage } from "../select-page.ts";
import { unfoldedSteps } from "../summary-page.ts";
import { writes } from "../writes.ts";
import type { Access } from "./reading.ts";

/**
 * A page of organizations, each with its mark, and with the place of its last Step that opened before a time, which an index
 * finds. So an organization in which nothing happened costs one look.
 */
const unfoldedOrganizations = ({ jsonArray }: SqlDialect): string => `SELECT o.id, m.mark,
    (SELECT ${jsonArray(["opened_at", "sequence"])} FROM steps
      WHERE organization_id = o.id AND ${listed.steps} AND opened_at < :until
      ORDER BY opened_at DESC, sequence DESC LIMIT 1) AS last
  FROM organizations o LEFT JOIN usage_marks m ON m.organization_id = o.id
  WHERE o.id > :after ORDER BY o.id LIMIT :limit`;

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

function markFromRow(row: unknown): string {
  return readRow(row).text("mark");
}

/** The hourly sums of a database. */
export function createUsageRepository({ database, dialect, conditions }: Access): UsageRepository {
  const unfolded = unfoldedSteps(dialect);
  const organizations = unfoldedOrganizations(dialect);
  const hasUnfolded = (row: unknown): boolean => {
    const last = readRow(row).jsonOrNull<readonly [number, number]>("last");
    if (last === null) return false;
    const [opened_at, sequence] = last;
    return readRow(row).textOrNull("mark") !== cursorAt(unfolded, { opened_at, sequence });
  };
  return {
    async unfolded({ after, until, limit }) {
      const rows = await database.read(() => all(organizations, { after, until, limit }));
      const idOf = (row: unknown): string => readRow(row).text("id");
      return {
        organizations: rows.filter(hasUnfolded).map(idOf),
        next: rows.length < limit ? null : idOf(rows.at(-1)),
      };
    },
    mark: (organization_id) =>
      database.read(() => find(statements.mark, { organization_id }, markFromRow)),
    async steps({ organizationId, to }, { cursor, limit }) {
      const where = conditions.ofSteps({ organizationId, ...(to === undefined ? {} : { to }) });
      // A page reads one row more than its limit.
      const paging = { cursor, limit: limit - 1 };
      // Its text is constant: with a cursor or without, with `to` or without.
      const { text, parameters } = selectPage(unfolded, where, paging);
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
      const { text, parameters } = selectPage(lists.usage, where, paging);
      const rows = await database.read(() => all(text, parameters));
      return pageOf(lists.usage, rows, paging.limit, usageRows.fromRow);
    },
  };
}
