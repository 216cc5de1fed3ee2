/**
 * What is true of every row of a table, and stated by the indexes for its lists and by the lists alone. A look-up by id
 * does not state it, so that the primary key is the only index that can serve it, whatever the planner knows of the table.
 */
export const listed = {
  keys: "sequence >= 0",
  sessions: "created_at >= 0",
  steps: "sequence >= 0",
  decisions: "sequence >= 0",
} as const;

/** The same of the Sessions that a request may continue. */
export const continued = "length >= 0";
