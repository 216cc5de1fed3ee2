import { nonChangeKinds } from "@tollgate/core/store";

/** The condition for the leaves of administrative changes, worded as in their partial indexes. */
export const changesAlone: string = `kind NOT IN (${nonChangeKinds
  .map((kind) => `'${kind}'`)
  .join(", ")})`;
