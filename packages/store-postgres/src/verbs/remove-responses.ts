import { joinMessages } from "@tollgate/store-engine";
import { type RowReader, readRow, responding } from "@tollgate/store-sql";
import type { Transaction } from "../database/transaction.ts";
import { locking } from "../statements/locking.ts";

/** A stored response by its name. */
export interface ResponseName {
  readonly organizationId: string;
  readonly id: string;
}

/**
 * Removes responses. What the remaining ones were built on moves into those that follow directly, once for all that
 * are removed, so that removing much of a chain does not copy its beginning again and again.
 */
export async function removeResponses(
  transaction: Transaction,
  removed: readonly ResponseName[],
): Promise<void> {
  const names = new Set(removed.map(keyOf));
  // Whoever continues one of them in this moment is waited for, and is seen below.
  for (const name of removed) await linkOf(transaction, name);
  for (const name of removed) {
    const continuations = await transaction.all(responding.continuations, parametersOf(name));
    for (const row of continuations) {
      const continuation = { ...name, id: readRow(row).text("id") };
      if (!names.has(keyOf(continuation))) await inherit(transaction, continuation, names);
    }
  }
  for (const name of removed) await transaction.run(responding.remove, parametersOf(name));
}

/** Moves what a response was built on into it, up to the first that remains. */
async function inherit(
  transaction: Transaction,
  heir: ResponseName,
  removed: ReadonlySet<string>,
): Promise<void> {
  const link = await linkOf(transaction, heir);
  const inherited = [link.bytes("inherited")];
  let builtOn = link.textOrNull("built_on");
  while (builtOn !== null && removed.has(keyOf({ ...heir, id: builtOn }))) {
    const ancestor = await linkOf(transaction, { ...heir, id: builtOn });
    inherited.unshift(ancestor.bytes("inherited"), ancestor.bytes("messages"));
    builtOn = ancestor.textOrNull("built_on");
  }
  await transaction.run(responding.relink, {
    ...parametersOf(heir),
    built_on: builtOn,
    inherited: joinMessages(inherited),
  });
}

async function linkOf(transaction: Transaction, name: ResponseName): Promise<RowReader> {
  return readRow(await transaction.get(locking.link, parametersOf(name)));
}

function parametersOf({ organizationId, id }: ResponseName) {
  return { organization_id: organizationId, id };
}

function keyOf({ organizationId, id }: ResponseName): string {
  return JSON.stringify([organizationId, id]);
}
