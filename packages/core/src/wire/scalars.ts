import { defaultLimits } from "../domain/limits.ts";
import { isUuid } from "../kernel/ids.ts";
import { described, type Read, wrongType, wrongValue } from "./read.ts";

export const flag: Read<boolean> = described(
  (value, path) => {
    if (typeof value !== "boolean") throw wrongType("a boolean", value, path);
    return value;
  },
  () => ({ type: "boolean" }),
);

/** Message content: bounded by the body alone. */
export const content: Read<string> = described(
  (value, path) => {
    if (typeof value !== "string") throw wrongType("a string", value, path);
    return value;
  },
  () => ({ type: "string" }),
);

/** A string outside message content. */
export const text: Read<string> = described(
  (value, path, limits) => {
    const given = content(value, path, limits);
    // A UTF-16 unit is at most 3 bytes of UTF-8, so most strings need no counting.
    if (given.length * 3 > limits.stringBytes && Buffer.byteLength(given) > limits.stringBytes)
      throw wrongValue(`must be at most ${limits.stringBytes} bytes long`, path);
    return given;
  },
  () => ({ type: "string", maxLength: defaultLimits.stringBytes }),
);

/** A string of `least` to `longest` characters. */
export function shortText(longest: number, least = 1): Read<string> {
  return described(
    (value, path, limits) => {
      const given = content(value, path, limits);
      if (given.length < least) throw wrongValue("must not be empty", path);
      if (given.length > longest)
        throw wrongValue(`must be at most ${longest} characters long`, path);
      return given;
    },
    () => ({ type: "string", minLength: least, maxLength: longest }),
  );
}

/** The longest id or name. */
const longestId = 255;
export const identifier: Read<string> = shortText(longestId);

/** The id of a tool call, which an upstream chose: some put a signature of thousands of characters into it. */
export const callId: Read<string> = shortText(65_536);

/** A UUID, in lower case. */
export const uuid: Read<string> = described(
  (value, path, limits) => {
    const given = content(value, path, limits);
    if (!isUuid(given)) throw wrongValue("must be a UUID", path);
    return given.toLowerCase();
  },
  () => ({ type: "string", minLength: 36, maxLength: 36 }),
);

export function number(least: number, most: number): Read<number> {
  return described(
    (value, path) => {
      if (typeof value !== "number") throw wrongType("a number", value, path);
      if (!(value >= least && value <= most))
        throw wrongValue(`must be between ${least} and ${most}`, path);
      return value;
    },
    () => ({ type: "number", minimum: least, maximum: most }),
  );
}

export function integer(least: number, most = Number.MAX_SAFE_INTEGER): Read<number> {
  const inRange = number(least, most);
  return described(
    (value, path, limits) => {
      if (typeof value === "number" && !Number.isSafeInteger(value))
        throw wrongType("an integer", value, path);
      return inRange(value, path, limits);
    },
    () => ({ type: "integer", minimum: least, maximum: most }),
  );
}

/** One of a closed list of words. */
export function oneOf<const Word extends string>(...words: readonly Word[]): Read<Word> {
  return described(
    (value, path, limits) => {
      const given = content(value, path, limits);
      const word = words.find((candidate) => candidate === given);
      if (word === undefined) throw wrongValue(`must be one of ${words.join(", ")}`, path);
      return word;
    },
    () => ({ enum: words }),
  );
}
