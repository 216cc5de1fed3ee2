import { nonChangeKinds } from "@tollgate/core/store";

/** The condition of the leaves of administrative changes, in the words of their partial indexes. */
export const changesAlone: string = `kind NOT IN (${nonChangeKinds
  .map((kind) => `'${kind}'`)
  .join(", ")})`;
