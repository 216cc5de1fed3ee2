import { nonChangeKinds } from "@tollgate/core/store";

/**
 * A condition that every row of a table meets. Only the table's lists and their indexes state it. A look-up by id
 * leaves it out, so the planner can serve it from the primary key alone, whatever its statistics say.
 */
export const listed = {
  keys: "sequence >= 0",
  sessions: "created_at >= 0",
  steps: "sequence >= 0",
  decisions: "sequence >= 0",
} as const;

/** The same for the Sessions that a request may continue. */
export const continued = "length >= 0";

/** The condition for the leaves of administrative changes. */
export const changesAlone: string = `kind NOT IN (${nonChangeKinds
  .map((kind) => `'${kind}'`)
  .join(", ")})`;
