/**
 * A condition that every row of a table meets. Only its lists and their indexes state it. A look-up by id doesn't, so
 * only the primary key can serve it, with any statistics of the planner.
 */
export const listed = {
  keys: "sequence >= 0",
  sessions: "created_at >= 0",
  steps: "sequence >= 0",
  decisions: "sequence >= 0",
} as const;

/** The same of the Sessions that a request may continue. */
export const continued = "length >= 0";
