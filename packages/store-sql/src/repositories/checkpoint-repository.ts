import type {
  CheckpointRepository,
  LeafBatch,
  LeavesOutside,
  OutsideQuery,
} from "@tollgate/core/store";
import type { SqlDialect } from "../dialect.ts";
import { lists } from "../lists.ts";
import { checkpointRows, sealedLeafFromRow } from "../rows/checkpoint-row.ts";
import { readRow } from "../rows/row-reader.ts";
import { all, anyway, find, get, run, type Script } from "../script.ts";
import type { Condition } from "../select-page.ts";
import { checkpointStatements as statements } from "../statements/checkpoint.ts";
import type { Access } from "./reading.ts";

/** The logs of a database. */
export function createCheckpointRepository({
  database,
  dialect,
  readPage,
}: Access): CheckpointRepository {
  const sealing = sealingIn(dialect);
  return {
    async unsealed({ after, limit }) {
      const text = after === null ? statements.firstUnsealed : statements.unsealed;
      const rows = await database.read(() => all(text, { after, limit }));
      const found = rows.map((row) => ({
        organizationId: readRow(row).text("id"),
        since: readRow(row).integerOrNull("since"),
      }));
      return {
        logs: found.flatMap(({ organizationId, since }) =>
          since === null ? [] : [{ organizationId, since }],
        ),
        next: found.length < limit ? null : (found.at(-1)?.organizationId ?? null),
      };
    },
    last: (organization_id) =>
      database.read(() => find(statements.last, { organization_id }, checkpointRows.fromRow)),
    async next(query) {
      // Asked first, because only later reads see everything that is settled now.
      const settled = await database.settled();
      return database.read(() => nextBatch(query, settled));
    },
    add: (entry) => database.write(() => add(sealing, entry), anyway),
    sign: ({ organizationId: organization_id, number, note }) =>
      database.write(function* () {
        return (yield* run(statements.sign, { organization_id, number, note })) > 0;
      }, anyway),
    async organizations(after, limit) {
      const text = after === null ? statements.firstOrganizations : statements.organizations;
      const rows = await database.read(() => all(text, { after, limit }));
      return rows.map((row) => ({
        organizationId: readRow(row).text("id"),
        sealedAt: readRow(row).integerOrNull("sealed_at"),
      }));
    },
    list: (query, paging) =>
      readPage(lists.checkpoints, [inLog(query)], paging, checkpointRows.fromRow),
    leaves: (query, paging) => readPage(lists.logLeaves, [inLog(query)], paging, sealedLeafFromRow),
    outside: (query) => database.read(() => leavesOutside(query)),
  };
}

function* leavesOutside(query: OutsideQuery): Script<LeavesOutside> {
  const { organizationId: organization_id, size, from, to, after, limit } = query;
  const text = after === null ? statements.firstOutside : statements.outside;
  const row = yield* get(text, {
    organization_id,
    size,
    from_time: from,
    to_time: to,
    after,
    limit,
  });
  const read = readRow(row);
  return {
    count: read.integer("outside"),
    since: read.integerOrNull("since"),
    next: read.integer("looked") < limit ? null : read.integerOrNull("last"),
  };
}

function inLog(query: { readonly organizationId: string; readonly from: number }): Condition {
  return {
    text: "organization_id = :organization_id AND number >= :from_number",
    parameters: { organization_id: query.organizationId, from_number: query.from },
  };
}

function* nextBatch(
  { organizationId, limit }: { readonly organizationId: string; readonly limit: number },
  settledNow: number,
): Script<LeafBatch> {
  const log = { organization_id: organizationId };
  const last = yield* get(statements.settled, log);
  const before = last === undefined ? -1 : readRow(last).integer("settled");
  const rows = yield* all(statements.next, { ...log, settled: before, limit });
  const leaves = rows.map(readRow);
  const places = leaves.map((leaf) => leaf.integer("sequence"));
  return {
    hashes: leaves.map((leaf) => leaf.bytes("hash")),
    places,
    // Leaves after the last of the batch may wait for the next one.
    settled: Math.max(before, Math.min(settledNow, places.at(-1) ?? before)),
    since: leaves[0]?.integer("at") ?? 0,
  };
}

/** Numbers the leaves of a batch. */
interface Sealing {
  readonly statement: string;
  readonly list: SqlDialect["list"];
}

/** The bounds find the leaves by their index, and the list picks them. */
function sealingIn({ isOneOf, list }: SqlDialect): Sealing {
  const statement = `INSERT INTO sealed_leaves (organization_id, number, sequence)
    SELECT organization_id, :first + row_number() OVER (ORDER BY sequence) - 1, sequence FROM leaves
    WHERE organization_id = :organization_id AND sequence >= :lowest AND sequence <= :highest
      AND ${isOneOf("CAST(sequence AS TEXT)", ":places")}`;
  return { statement, list };
}

function* add(
  { statement, list }: Sealing,
  { checkpoint, batch }: Parameters<CheckpointRepository["add"]>[0],
): Script<boolean> {
  const { organizationId: organization_id, number, size, frontier, at } = checkpoint;
  const { places, settled, since } = batch;
  const row = { organization_id, number, size, frontier, at, settled, since };
  if ((yield* run(statements.add, row)) === 0) return false;
  const sealed = yield* run(statement, {
    organization_id,
    first: size - places.length,
    lowest: places[0] ?? 0,
    highest: places.at(-1) ?? 0,
    places: list(places.map(String)),
  });
  if (sealed !== places.length) throw new TypeError("a leaf to seal does not exist");
  return true;
}
