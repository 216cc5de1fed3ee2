import { defaultLimits } from "../domain/limits.ts";
import { maxCallLabelLength } from "../domain/message.ts";
import { isUuid } from "../kernel/ids.ts";
import { isLonger } from "../kernel/surrogates.ts";
import { type Reader, withSchema, wrongType, wrongValue } from "./read.ts";

export const flag: Reader<boolean> = withSchema(
  (value, path) => {
    if (typeof value !== "boolean") throw wrongType("a boolean", value, path);
    return value;
  },
  () => ({ type: "boolean" }),
);

/** Message content, which is limited only by the size of the body. */
export const content: Reader<string> = withSchema(
  (value, path) => {
    if (typeof value !== "string") throw wrongType("a string", value, path);
    return value;
  },
  () => ({ type: "string" }),
);

/** A string outside message content. */
export const text: Reader<string> = withSchema(
  (value, path, limits) => {
    const given = content(value, path, limits);
    // A UTF-16 unit is at most 3 bytes of UTF-8, so most strings need no counting.
    if (given.length * 3 > limits.stringBytes && Buffer.byteLength(given) > limits.stringBytes)
      throw wrongValue(`must be at most ${limits.stringBytes} bytes long`, path);
    return given;
  },
  () => ({ type: "string", maxLength: defaultLimits.stringBytes }),
);

/** A string of `minLength` to `maxLength` characters. */
export function shortText(maxLength: number, minLength = 1): Reader<string> {
  return withSchema(
    (value, path, limits) => {
      const given = content(value, path, limits);
      if (given.length < minLength) throw wrongValue("must not be empty", path);
      if (isLonger(given, maxLength))
        throw wrongValue(`must be at most ${maxLength} characters long`, path);
      return given;
    },
    () => ({ type: "string", minLength, maxLength }),
  );
}

/** The longest id or name. */
const maxIdLength = 255;
export const identifier: Reader<string> = shortText(maxIdLength);

/** The id or the name in a tool call of the history, as an upstream or its model chose it. */
export const callLabel: Reader<string> = shortText(maxCallLabelLength);

/** A UUID, in lower case. */
export const uuid: Reader<string> = withSchema(
  (value, path, limits) => {
    const given = content(value, path, limits);
    if (!isUuid(given)) throw wrongValue("must be a UUID", path);
    return given.toLowerCase();
  },
  () => ({ type: "string", minLength: 36, maxLength: 36 }),
);

export function number(min: number, max: number): Reader<number> {
  return withSchema(
    (value, path) => {
      if (typeof value !== "number") throw wrongType("a number", value, path);
      if (!(value >= min && value <= max))
        throw wrongValue(
          `must be ${max === Number.MAX_SAFE_INTEGER ? `at least ${min}` : `between ${min} and ${max}`}`,
          path,
        );
      return value;
    },
    () => ({ type: "number", minimum: min, maximum: max }),
  );
}

export function integer(min: number, max = Number.MAX_SAFE_INTEGER): Reader<number> {
  const inRange = number(min, max);
  return withSchema(
    (value, path, limits) => {
      if (typeof value === "number" && !Number.isSafeInteger(value))
        throw wrongType("an integer", value, path);
      return inRange(value, path, limits);
    },
    () => ({ type: "integer", minimum: min, maximum: max }),
  );
}

/** One of a closed list of words. */
export function oneOf<const Word extends string>(...words: readonly Word[]): Reader<Word> {
  return withSchema(
    (value, path, limits) => {
      const given = content(value, path, limits);
      const word = words.find((candidate) => candidate === given);
      if (word === undefined) throw wrongValue(`must be one of ${words.join(", ")}`, path);
      return word;
    },
    () => ({ enum: words }),
  );
}
