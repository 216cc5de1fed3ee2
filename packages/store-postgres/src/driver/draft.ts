import type { Change, CounterMove, RowName } from "@tollgate/store-engine";
import { claimKeyToRow, moveToRow, rowsOf, type SqlParameters } from "@tollgate/store-sql";
import { groupAfter } from "./followers.ts";
import { isSameRow } from "./lock-rows.ts";
import type { ReadSet } from "./read-set.ts";
import type { CheckedKind } from "./row-kinds.ts";

/** A change as it is sent, with the rows it was decided on. */
export interface Draft {
  readonly change: Change;
  /** Changes of one group are written all or none. */
  readonly group: number;
  /** Rows, each with the name of its kind. */
  readonly rows: readonly (readonly [name: string, row: SqlParameters])[];
  readonly moves: readonly CounterMove[];
  /** The rows it locks. */
  readonly locks: Locks;
  /** Bytes and characters. */
  readonly length: number;
}

/** The rows that a change locks, with the versions its decision saw. */
export interface Locks {
  readonly steps: readonly LockedRow[];
  readonly sessions: readonly LockedRow[];
  readonly responses: readonly RowName[];
  /** Responses that must not be removed. */
  readonly keptResponses: readonly RowName[];
}

export interface LockedRow extends RowName {
  readonly version: number;
}

/** Lists the rows that a change updates, branches from or builds on. */
export function locksOf(change: Change, looked: ReadSet): Locks {
  const steps: LockedRow[] = [];
  const sessions: LockedRow[] = [];
  const responses: RowName[] = [];
  const keptResponses: RowName[] = [];
  const stepNamed = (organizationId: string, id: string): void => {
    steps.push({ organizationId, id, version: stepVersion(looked, { organizationId, id }) });
  };
  const sessionNamed = (organizationId: string, id: string): void => {
    const seen = looked.sessions.find((session) => isSameRow(session, { organizationId, id }));
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

/** An open Step changes with its attempt; a settled one never changes. */
function stepVersion({ steps }: ReadSet, name: RowName): number {
  const step = steps.find((record) => isSameRow(record.step, name))?.step;
  const attempt = step?.attempts.at(-1)?.number ?? 0;
  return step?.outcome === null ? attempt : -attempt;
}

/**
 * Prepares a change to be sent after others. Without `comparesAll`, the decision held locks on what it changes, and the other
 * rows it read may change.
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

type Add = (name: CheckedKind, row: SqlParameters) => void;

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
  const addRow = (name: CheckedKind, { organizationId, id }: RowName, version: number): void =>
    add(name, { organization_id: organizationId, id, version });
  for (const row of locks.steps) addRow("lockedSteps", row, row.version);
  for (const row of locks.sessions) addRow("lockedSessions", row, row.version);
  for (const row of locks.keptResponses) addRow("keptResponses", row, 1);
  for (const row of looked.keys) addRow("keys", row, row.key.version);
  if (looked.budgetsVersion !== null) add("budgets", { version: looked.budgetsVersion });
  if (!comparesAll) return;
  for (const row of looked.sessions)
    if (!locks.sessions.some((one) => isSameRow(one, row))) addRow("sessions", row, row.updated);
  for (const key of looked.unclaimed) add("unclaimed", claimKeyToRow(key));
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
  for (const column in row) {
    const value = row[column];
    if (value && typeof value !== "number") length += value.length;
  }
  return length;
}
