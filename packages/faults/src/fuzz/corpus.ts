import { isUtf8 } from "node:buffer";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const folder = fileURLToPath(new URL("../../corpus", import.meta.url));

/** An input that is kept, and where it comes from. Bytes that are not UTF-8 are kept as Base64. */
interface Entry {
  readonly from: string;
  readonly text?: string;
  readonly base64?: string;
}

/** Reads the kept inputs of a surface. */
export function readCorpus(surface: string): readonly Buffer[] {
  return readEntries(surface).map(({ text, base64 }) =>
    text === undefined ? Buffer.from(base64 ?? "", "base64") : Buffer.from(text),
  );
}

/** Keeps an input, unless it is already kept. */
export function addToCorpus(surface: string, from: string, input: Buffer): void {
  const entries = readEntries(surface);
  const entry: Entry = isUtf8(input)
    ? { from, text: input.toString() }
    : { from, base64: input.toString("base64") };
  if (entries.some(({ text, base64 }) => text === entry.text && base64 === entry.base64)) return;
  writeFileSync(pathOf(surface), `${JSON.stringify([...entries, entry], null, 2)}\n`);
}

function readEntries(surface: string): readonly Entry[] {
  if (!existsSync(pathOf(surface))) return [];
  const list: unknown = JSON.parse(readFileSync(pathOf(surface), "utf8"));
  if (!Array.isArray(list)) throw new Error(`The corpus of ${surface} must be a list.`);
  return list;
}

const pathOf = (surface: string): string => `${folder}/${surface}.json`;

const maxTries = 1_000;

/** Removes as much of an input as possible while it still fails. */
export async function minimize(
  input: Buffer,
  fails: (input: Buffer) => Promise<boolean>,
): Promise<Buffer> {
  let smallest = input;
  let tries = 0;
  for (let size = input.length >> 1; size > 0; size >>= 1) {
    for (let from = 0; from < smallest.length && tries < maxTries; tries++) {
      const shorter = Buffer.concat([smallest.subarray(0, from), smallest.subarray(from + size)]);
      if (await fails(shorter)) smallest = shorter;
      else from += size;
    }
  }
  return smallest;
}
