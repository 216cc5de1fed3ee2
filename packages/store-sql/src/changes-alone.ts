import { unchangingKinds } from "@tollgate/core/store";

/** The condition of the leaves of administrative changes, in the words of their partial indexes. */
export const changesAlone: string = `kind NOT IN (${unchangingKinds
  .map((kind) => `'${kind}'`)
  .join(", ")})`;
