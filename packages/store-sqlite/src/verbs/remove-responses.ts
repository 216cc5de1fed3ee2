import { joinMessages, type RowReader, readRow, responding } from "@tollgate/store-sql";
import type { Transaction } from "../database/transaction.ts";

/** A stored response by its name. */
export interface ResponseName {
  readonly organizationId: string;
  readonly id: string;
}

/**
 * Removes responses. What the remaining ones were built on moves into those that follow directly, once for all that
 * are removed, so that removing much of a chain does not copy its beginning again and again.
 */
export function removeResponses(transaction: Transaction, removed: readonly ResponseName[]): void {
  const names = new Set(removed.map(keyOf));
  for (const name of removed) {
    const continuations = transaction.all(responding.continuations, parametersOf(name));
    for (const row of continuations) {
      const continuation = { ...name, id: readRow(row).text("id") };
      if (!names.has(keyOf(continuation))) inherit(transaction, continuation, names);
    }
  }
  for (const name of removed) transaction.run(responding.remove, parametersOf(name));
}

/** Moves what a response was built on into it, up to the first that remains. */
function inherit(transaction: Transaction, heir: ResponseName, removed: ReadonlySet<string>): void {
  const link = linkOf(transaction, heir);
  const inherited = [link.bytes("inherited")];
  let builtOn = link.textOrNull("built_on");
  while (builtOn !== null && removed.has(keyOf({ ...heir, id: builtOn }))) {
    const ancestor = linkOf(transaction, { ...heir, id: builtOn });
    inherited.unshift(ancestor.bytes("inherited"), ancestor.bytes("messages"));
    builtOn = ancestor.textOrNull("built_on");
  }
  transaction.run(responding.relink, {
    ...parametersOf(heir),
    built_on: builtOn,
    inherited: joinMessages(inherited),
  });
}

function linkOf(transaction: Transaction, name: ResponseName): RowReader {
  return readRow(transaction.get(responding.link, parametersOf(name)));
}

function parametersOf({ organizationId, id }: ResponseName) {
  return { organization_id: organizationId, id };
}

function keyOf({ organizationId, id }: ResponseName): string {
  return JSON.stringify([organizationId, id]);
}
