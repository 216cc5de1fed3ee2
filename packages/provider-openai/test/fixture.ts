import { readFileSync } from "node:fs";

/** The text of a recorded answer. */
export function fixture(name: string): string {
  return readFileSync(new URL(`fixtures/${name}`, import.meta.url), "utf8");
}
