import { type JsonBounds, measureJson } from "../kernel/measure-json.ts";

// Reading more than this in one go would hold up the process.
const bounds: JsonBounds = {
  depth: 100_000,
  values: 400_000,
  members: 100_000,
  numberLength: 100_000,
};
const smallText = 65_536;

/**
 * Whether a JSON text of an upstream, which is an event of a stream or a whole body, holds more than is read in one go:
 * more than 400,000 values, 100,000 members, 100,000 levels or a number of more than 100,000 digits. A provider asks
 * this before it reads the text, and fails the call with `too_many_values`.
 */
export function isTooMuchJson(text: string): boolean {
  return text.length > smallText && measureJson(text, bounds) === null;
}
