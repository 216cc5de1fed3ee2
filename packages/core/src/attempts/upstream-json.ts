import { type JsonBounds, measureJson } from "../kernel/measure-json.ts";

// Parsing more than this at once would block the process.
const bounds: JsonBounds = {
  depth: 100_000,
  values: 400_000,
  members: 100_000,
  numberLength: 100_000,
};
const smallText = 65_536;

/**
 * Whether an upstream's JSON text, an event of a stream or a whole body, is too much to parse at once: more than 400,000
 * values, 100,000 members or 100,000 levels, or a number of more than 100,000 digits. Providers call this before they
 * parse the text, and if it is true, fail the call with `too_many_values`.
 */
export function isTooMuchJson(text: string): boolean {
  return text.length > smallText && measureJson(text, bounds) === null;
}
