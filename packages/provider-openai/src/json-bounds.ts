import { type JsonBounds, measureJson } from "@tollgate/core/provider";
import { invalidAnswer } from "./failures.ts";

// Reading more than this in one go would hold up the process.
const bounds: JsonBounds = {
  depth: 100_000,
  values: 400_000,
  members: 100_000,
  numberLength: 100_000,
};
const smallText = 65_536;

/** Whether a JSON text of an upstream holds more than is read in one go. */
export function isTooMuch(text: string): boolean {
  return text.length > smallText && measureJson(text, bounds) === null;
}

export function tooMuch(): Error {
  return invalidAnswer("too_many_values", "The provider answered more than is accepted.");
}
