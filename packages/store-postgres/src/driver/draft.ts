import type { Change, CounterMove, RowName } from "@tollgate/store-engine";
import { moveToRow, rowsOf, type SqlParameters } from "@tollgate/store-sql";
import type { GroupName } from "./commit-groups.ts";
import { groupAfter } from "./followers.ts";
import type { ReadSet } from "./read-set.ts";

/** A change as it is sent, with what it was decided on. */
export interface Draft {
  readonly change: Change;
  /** Changes of one group are written all or none. */
  readonly group: number;
  /** Rows by the group or the write that they are of. */
  readonly rows: readonly (readonly [name: string, row: SqlParameters])[];
  readonly moves: readonly CounterMove[];
  /** What is locked while it is written. */
  readonly locks: Locks;
  /** Bytes and characters. */
  readonly length: number;
}

/** Rows that a change needs to itself: each as its decision saw it, by a version where it has one. */
export interface Locks {
  readonly steps: readonly LockedRow[];
  readonly sessions: readonly LockedRow[];
  readonly responses: readonly RowName[];
  /** Those that only have to stay. */
  readonly keptResponses: readonly RowName[];
}

export interface LockedRow extends RowName {
  readonly version: number;
}

/** What a change of the store locks: what it changes, what it branches from and what it is built on. */
export function locksOf(change: Change, looked: ReadSet): Locks {
  const steps: LockedRow[] = [];
  const sessions: LockedRow[] = [];
  const responses: RowName[] = [];
  const keptResponses: RowName[] = [];
  const stepNamed = (organizationId: string, id: string): void => {
    steps.push({ organizationId, id, version: stepVersion(looked, id) });
  };
  const sessionNamed = (organizationId: string, id: string): void => {
    const seen = looked.sessions.find((session) => session.id === id);
    if (seen) sessions.push({ organizationId, id, version: seen.updated });
  };
  for (const { write, row } of change)
    switch (write) {
      case "update step":
      case "settle step":
        stepNamed(row.step.organizationId, row.step.id);
        break;
      case "insert correction":
        stepNamed(row.organizationId, row.stepId);
        break;
      case "update session":
        sessions.push({ organizationId: row.organizationId, id: row.id, version: row.updated });
        break;
      case "insert session":
        if (row.branchedFromSessionId !== null)
          sessionNamed(row.organizationId, row.branchedFromSessionId);
        break;
      case "erase session":
        sessionNamed(row.organizationId, row.id);
        break;
      case "insert response":
        if (row.builtOn !== null)
          keptResponses.push({ organizationId: row.organizationId, id: row.builtOn });
        break;
      case "remove response":
        responses.push(row);
    }
  return { steps, sessions, responses, keptResponses };
}

/** An open Step is as it was while the same attempt runs; a settled one changes no more. */
function stepVersion({ steps }: ReadSet, id: string): number {
  const step = steps.find((record) => record.step.id === id)?.step;
  const attempt = step?.attempts.at(-1)?.number ?? 0;
  return step?.outcome === null ? attempt : -attempt;
}

/**
 * A change ready to be sent after others. Without `comparesAll` it was decided while what it changes was
 * locked already, and what else it looked at may go on.
 */
export function draftOf(
  change: Change,
  looked: ReadSet,
  {
    before,
    comparesAll,
  }: {
    readonly before: readonly Pick<Draft, "locks" | "group">[];
    readonly comparesAll: boolean;
  },
): Draft {
  const locks = locksOf(change, looked);
  const place = before.length + 1;
  const group = groupAfter(locks.sessions, before, place);
  const rows: [string, SqlParameters][] = [];
  const moves: CounterMove[] = [];
  let length = 0;
  const add = (name: string, row: SqlParameters): void => {
    rows.push([name, row]);
    length += lengthOf(row);
  };
  addLooked(add, { looked, locks, comparesAll });
  for (const operation of change)
    if (operation.write === "move counter") {
      moves.push(operation.row);
      add("moves", moveToRow(operation.row));
    } else for (const [name, row] of rowsOf(operation, place)) add(name, row);
  return { change, group, rows, moves, locks, length };
}

type Add = (name: GroupName, row: SqlParameters) => void;

function addLooked(
  add: Add,
  {
    looked,
    locks,
    comparesAll,
  }: {
    readonly looked: ReadSet;
    readonly locks: Locks;
    readonly comparesAll: boolean;
  },
): void {
  const addRow = (name: GroupName, { organizationId, id }: RowName, version: number): void =>
    add(name, { organization_id: organizationId, id, version });
  for (const row of locks.steps) addRow("lockedSteps", row, row.version);
  for (const row of locks.sessions) addRow("lockedSessions", row, row.version);
  for (const row of locks.keptResponses) addRow("keptResponses", row, 1);
  for (const row of looked.keys) addRow("keys", row, row.key.version);
  if (looked.budgetsVersion !== null) add("budgets", { version: looked.budgetsVersion });
  if (!comparesAll) return;
  for (const row of looked.sessions)
    if (!locks.sessions.some(({ id }) => id === row.id)) addRow("sessions", row, row.updated);
  for (const { owner, source, chain, found } of looked.matches)
    add("matches", {
      organization_id: owner.organizationId,
      key_id: owner.keyId,
      source,
      chain,
      found: found
        .toSorted((a, b) => a.updated - b.updated)
        .map(({ id, updated }) => `${id} ${updated}`)
        .join(","),
    });
}

function lengthOf(row: SqlParameters): number {
  let length = 0;
  for (const value of Object.values(row))
    if (value !== null && typeof value !== "number") length += value.length;
  return length;
}
