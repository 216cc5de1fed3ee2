import { isDeepStrictEqual } from "node:util";
import type { EmptyStores } from "../stores/empty-stores.ts";
import type { Command } from "./command.ts";
import { type History, play } from "./play.ts";

/** Plays the same commands on stores of each kind; every store's history must be that of the first. */
export async function playOnEach(
  kinds: readonly EmptyStores[],
  commands: readonly Command[],
): Promise<readonly History[]> {
  const histories: History[] = [];
  for (const kind of kinds) histories.push(await playOn(kind, commands));
  return histories;
}

/** Says where two histories part; null where they do not. */
export function difference(expected: History, other: History): string | null {
  const at = expected.findIndex((entry, index) => !isDeepStrictEqual(entry, other[index]));
  if (at === -1 && expected.length === other.length) return null;
  return `entry ${at}:\n${JSON.stringify(expected[at])}\n${JSON.stringify(other[at])}`;
}

async function playOn(kind: EmptyStores, commands: readonly Command[]): Promise<History> {
  const { store, drop } = await kind.open();
  try {
    return await play(store, commands);
  } finally {
    await drop();
  }
}
