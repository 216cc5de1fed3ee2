import type { SqlParameters } from "@tollgate/store-sql";

const lock = (turn: string, number: number): string => `hashtextextended(${turn}, ${number})`;

/** How sweeps are carried out: one process at a time, so that none does what another has done. */
export const sweeping = {
  evenIfDone: true,
  turn: [`SELECT pg_advisory_xact_lock(${lock("'sweep'", 2)})`, {}],
} as const;

/** How responses are swept: while none is deleted, for each removal may change what the others move. */
export const sweepingResponses = {
  evenIfDone: true,
  turn: [`SELECT pg_advisory_xact_lock(${lock("'responses'", 2)})`, {}],
} as const;

/** A turn to delete one: in its organization one at a time, and while none is swept. */
export function turnToDelete(organizationId: string): readonly [string, SqlParameters] {
  const text = `SELECT pg_advisory_xact_lock_shared(${lock("'responses'", 2)}),
    pg_advisory_xact_lock(${lock(":organization_id", 1)})`;
  return [text, { organization_id: organizationId }];
}
