import { type ModelAliases, parseModelId } from "../domain/model-id.ts";
import { everyOrganization } from "../domain/organization.ts";
import type { OneOrMany } from "../domain/pattern.ts";
import { connectionOwnerships } from "../domain/policy-decision.ts";
import { type Duration, parseDuration } from "../kernel/duration.ts";
import { isoToMilliseconds } from "../kernel/iso-time.ts";
import { parseUsd } from "../kernel/nano-usd.ts";
import type { Schema } from "./read.ts";
import * as z from "./z.ts";

/** A string that passes a test; `rule` completes "`path` …". */
export function text(test: (value: string) => boolean, rule: string) {
  return z.string({ error: rule }).check(z.refine(test, { error: rule }));
}

/** An opaque id of the host application, or a label. */
export const opaqueId = text(isOpaqueId, "must be 1 to 255 characters without control characters");

/** One organization, or `everyOrganization`. */
export const organizationOrAll: Schema<string | typeof everyOrganization> = z.union(
  [opaqueId, z.custom<typeof everyOrganization>((value) => value === everyOrganization)],
  { error: "must be 1 to 255 characters without control characters, or everyOrganization" },
);

/** A name or a data class of the configuration. */
export const dataClassName = text(
  (name) => /^[A-Za-z0-9_.-]{1,64}$/.test(name),
  "must be 1 to 64 letters, digits, dots, hyphens and underscores",
);

/** A model id or a pattern of one. */
export const modelPattern = text(
  (pattern) => parseModelId(pattern) !== null,
  "must be <gateway>/<vendor>/<model>, in which * matches inside its part",
);

/** The id of one model. */
export const fullModelId = text(
  (id) => parseModelId(id) !== null && !id.includes("*"),
  "must be <gateway>/<vendor>/<model>",
);

const maxAliases = 100;

/** A name that no model id can have: ids have two slashes or more. */
const aliasName = text(
  (name) => name.length <= 128 && /^[A-Za-z0-9][\w.:@-]*(?:\/[A-Za-z0-9][\w.:@-]*)?$/.test(name),
  "must be 1 to 128 letters, digits and . _ : @ -, with at most one slash",
);

/** Plain names for models. They can't lead to each other, because a target has the form of an id. */
export const modelAliases: Schema<ModelAliases> = z.record(aliasName, fullModelId).check(
  z.refine((aliases) => Object.keys(aliases).length <= maxAliases, {
    error: `must have at most ${maxAliases} members`,
  }),
);

/** A model as its gateway knows it. */
export const vendorAndModel = text(
  (id) => parseModelId(`g/${id}`) !== null,
  "must be of the form <vendor>/<model>",
);

/** An allowlist: every request is compared with each of its patterns. */
export const modelPatterns = z.array(modelPattern).check(z.maxLength(1_000));

export const isoTime = text(
  (time) => isoToMilliseconds(time) !== null,
  "must be an ISO 8601 time: a day, or a time with Z or its offset from UTC",
);

/** A length of time: milliseconds, or a whole number with a unit. */
export const duration: Schema<Duration> = z.custom<Duration>(
  (value) =>
    (typeof value === "number" || typeof value === "string") && parseDuration(value) !== null,
  { error: 'must be a duration such as "90s" or milliseconds' },
);

const millisecondsRule = "must be a whole number of milliseconds, 1 or more";

/** A time to wait, in milliseconds, such as a binding's `writeStall`. */
export const milliseconds: Schema<number> = z
  .int({ error: millisecondsRule })
  .check(z.minimum(1, { error: millisecondsRule }));

/** US dollars, as a number or a decimal string. */
export const usd: Schema<number | string> = z.custom<number | string>(
  (value) => (typeof value === "number" || typeof value === "string") && parseUsd(value) !== null,
  { error: "must be US dollars, 0 or more, with at most 9 decimals" },
);

/** A whole number from `min` to `max`; the error names both. */
export function wholeNumber(min: number, max = Number.MAX_SAFE_INTEGER) {
  const bound = max === Number.MAX_SAFE_INTEGER ? "" : ` to ${max}`;
  const rule = `must be a whole number from ${min}${bound}`;
  // Without `abort`, an unsafe number would be reported again, as out of range.
  return z
    .int({ error: rule, abort: true })
    .check(z.minimum(min, { error: rule }), z.maximum(max, { error: rule }));
}

const partRule = "must be a number above 0 and up to 1";

/** A part of a whole. */
export const part = z
  .number({ error: partRule })
  .check(z.refine((value) => value > 0 && value <= 1, { error: partRule }));

/** Who holds an account: the platform or the customer. */
export const connectionOwnership = z.enum(connectionOwnerships);

/** A value or a list of them, which isn't empty: an empty list would match nothing, unnoticed. */
export function oneOrMany<Value extends string>(
  item: z.ZodMiniType<Value, Value>,
): Schema<OneOrMany<Value>> {
  return z.union([item, z.array(item).check(z.minLength(1))]);
}

/** 1 to 255 characters of well-formed text without control characters. */
function isOpaqueId(id: unknown): id is string {
  return (
    typeof id === "string" &&
    id !== "" &&
    id.length <= 255 &&
    id.isWellFormed() &&
    !/\p{Cc}/u.test(id)
  );
}
