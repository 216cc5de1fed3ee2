import {
  type Checkpoint,
  type CheckpointRepository,
  decodeCursor,
  encodeCursor,
  type StorePage,
  type StorePaging,
} from "@tollgate/core/store";
import { compareBytes } from "@tollgate/store-engine";
import { leafOf } from "./history.ts";
import { mapPage } from "./page.ts";
import type { Log, State } from "./state.ts";

/** The logs. Leaves are written one after the other, so a log seals them in its order of writing. */
export function createCheckpointRepository({ logs }: State): CheckpointRepository {
  const logOf = (organizationId: string): Log =>
    logs.get(organizationId) ?? { leaves: [], checkpoints: [] };
  const named = (after: string | null): readonly (readonly [string, Log])[] =>
    [...logs]
      .filter(([id]) => after === null || compareBytes(id, after) > 0)
      .sort(([a], [b]) => compareBytes(a, b));
  return {
    async unsealed({ after, limit }) {
      const found = named(after).slice(0, limit);
      return {
        logs: found.flatMap(([organizationId, log]) => {
          const first = log.leaves[signedSize(log)];
          return first === undefined ? [] : [{ organizationId, since: first.at }];
        }),
        next: found.length < limit ? null : (found.at(-1)?.[0] ?? null),
      };
    },
    last: async (organizationId) => logOf(organizationId).checkpoints.at(-1) ?? null,
    async next({ organizationId, limit }) {
      const { leaves, checkpoints } = logOf(organizationId);
      const size = checkpoints.at(-1)?.size ?? 0;
      const rows = leaves.slice(size, size + limit);
      return {
        hashes: rows.map((row) => leafOf(row).hash),
        places: rows.map((_, at) => size + at),
        settled: leaves.length,
        since: rows[0]?.at ?? 0,
      };
    },
    async add({ checkpoint }) {
      const { checkpoints } = logOf(checkpoint.organizationId);
      if (checkpoints.length !== checkpoint.number) return false;
      checkpoints.push({ ...checkpoint, frontier: checkpoint.frontier.slice(), note: null });
      return true;
    },
    async sign({ organizationId, number, note }) {
      const { checkpoints } = logOf(organizationId);
      const checkpoint = checkpoints[number];
      if (checkpoint?.note !== null) return false;
      checkpoints[number] = { ...checkpoint, note };
      return true;
    },
    async organizations(after, limit) {
      return named(after)
        .slice(0, limit)
        .map(([organizationId, { checkpoints }]) => ({
          organizationId,
          sealedAt: checkpoints.at(-1)?.at ?? null,
        }));
    },
    list: async ({ organizationId, from }, paging) =>
      pageFrom("checkpoints", logOf(organizationId).checkpoints, from, paging),
    async leaves({ organizationId, from }, paging) {
      const { leaves, checkpoints } = logOf(organizationId);
      const sealed = leaves
        .slice(0, checkpoints.at(-1)?.size ?? 0)
        .map((row, index) => ({ row, index }));
      return mapPage(pageFrom("log leaves", sealed, from, paging), ({ row, index }) => {
        return { organizationId, index, leaf: leafOf(row) };
      });
    },
    async outside({ organizationId, size, from, to, after, limit }) {
      const start = after === null ? 0 : after + 1;
      const looked = logOf(organizationId).leaves.slice(start, start + limit);
      const late = looked
        .slice(Math.max(0, size - start))
        .flatMap(({ at }) => (at < from || at > to ? [at] : []));
      return {
        count: late.length,
        since: late.length === 0 ? null : Math.min(...late),
        next: looked.length < limit ? null : start + limit - 1,
      };
    },
  };
}

function signedSize({ checkpoints }: Log): number {
  return checkpoints.findLast(({ note }: Checkpoint) => note !== null)?.size ?? 0;
}

function pageFrom<Row>(
  name: string,
  rows: readonly Row[],
  from: number,
  { cursor, limit }: StorePaging,
): StorePage<Row> {
  const start = cursor === null ? from : decodeCursor(name, cursor).order + 1;
  const end = start + limit;
  return {
    data: rows.slice(start, end),
    nextCursor: rows.length > end ? encodeCursor(name, { order: end - 1, tie: "" }) : null,
  };
}
