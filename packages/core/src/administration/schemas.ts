import {
  amountSchema,
  budgetSchema,
  rateLimitChecks,
  rateLimitMembers,
} from "../budgets/schema.ts";
import { adminRoles } from "../domain/admin-token.ts";
import { leadingSystems } from "../domain/api-key.ts";
import { changeKinds } from "../domain/change-kind.ts";
import type { OneOrMany } from "../domain/pattern.ts";
import { endpointNames, stepOutcomes } from "../domain/step.ts";
import type { UsageDetails } from "../domain/usage.ts";
import { summaryDimensions } from "../domain/usage-fold.ts";
import type { SummaryDimension } from "../domain/usage-group.ts";
import type { Schema } from "../input/read.ts";
import {
  connectionOwnership,
  dataClassName,
  duration,
  isoTime,
  modelAliases,
  modelPattern,
  modelPatterns,
  oneOrMany,
  opaqueId,
  organizationOrAll,
  text,
  wholeNumber,
} from "../input/values.ts";
import * as z from "../input/z.ts";
import { parseDuration } from "../kernel/duration.ts";
import { isLonger } from "../kernel/surrogates.ts";
import { fromIso } from "./tenant.ts";

const actor = z.exactOptional(opaqueId);
const ifMatch = z.exactOptional(opaqueId);
const idempotencyKey = z.exactOptional(
  text((key) => /^[\x21-\x7e]{1,255}$/.test(key), "must be 1 to 255 visible ASCII characters"),
);
const selector = z.exactOptional(oneOrMany(opaqueId));
const time = z.exactOptional(isoTime);
const count = wholeNumber(0);

/** A reference to one record, by its id. */
export const recordReference = z.strictObject({ organizationId: organizationOrAll, id: opaqueId });

/** A reference to recorded content, with who reads it and up to which data class. */
export const contentReference = z.extend(recordReference, {
  actor,
  upTo: z.exactOptional(dataClassName),
});

/** The most messages of one reading of a transcript. */
export const maxTranscriptMessages = 1_000;

/** A reference to a part of a transcript. */
export const transcriptReference = z.extend(contentReference, {
  from: z.exactOptional(count),
  count: z.exactOptional(wholeNumber(1, maxTranscriptMessages)),
});

/** Selects records of one organization, or of all. */
export const organizationFilter = z.strictObject({ organizationId: organizationOrAll });

const models = z.exactOptional(z.nullable(modelPatterns));

const keySettings = {
  label: z.exactOptional(opaqueId),
  defaultDataClass: z.exactOptional(dataClassName),
  minimumDataClass: z.exactOptional(dataClassName),
  expiresAt: z.exactOptional(z.nullable(isoTime)),
  models,
  aliases: z.exactOptional(z.nullable(modelAliases)),
  leadingSystem: z.exactOptional(z.nullable(z.enum(leadingSystems))),
};

export const keyCreation = z.strictObject({
  organizationId: opaqueId,
  userId: opaqueId,
  ...keySettings,
  label: opaqueId,
  idempotencyKey,
  actor,
});

const ofKey = { organizationId: organizationOrAll, id: opaqueId, actor };

export const keyReference = z.strictObject(ofKey);

export const keyRevocation = z.strictObject({ ...ofKey, ifMatch });

export const keyChange = z.strictObject({ ...ofKey, ...keySettings, ifMatch });

/** A year, in milliseconds. */
const maxOverlap = 31_536_000_000;

export const keyRotation = z.strictObject({
  ...ofKey,
  ifMatch,
  overlap: z.exactOptional(
    duration.check(
      z.refine((overlap) => (parseDuration(overlap) ?? 0) <= maxOverlap, {
        error: "must be at most 365 days",
      }),
    ),
  ),
});

/** All keys of one user. */
export const keysOfUser = z.strictObject({ organizationId: opaqueId, userId: opaqueId, actor });

export const keyFilter = z.strictObject({
  organizationId: organizationOrAll,
  userId: z.exactOptional(opaqueId),
  label: z.exactOptional(opaqueId),
  live: z.exactOptional(z.boolean()),
});

const credentialRule =
  "must be 1 to 8,192 printable ASCII characters, without a space at either end";

export const connectionReference = z.strictObject({ organizationId: opaqueId, gateway: opaqueId });

export const connectionRemoval = z.extend(connectionReference, { ifMatch, actor });

export const connectionSetting = z.extend(connectionReference, {
  apiKey: text(
    (apiKey) =>
      apiKey.length <= 8_192 &&
      /^[\x21-\x7e]/.test(apiKey) &&
      /^[\x20-\x7e]*$/.test(apiKey) &&
      !apiKey.endsWith(" "),
    credentialRule,
  ),
  ifMatch,
  actor,
});

export const acting = z.strictObject({ actor });

const rightToRead = z.strictObject({ upTo: dataClassName });

export const adminTokenCreation = z.strictObject({
  label: text(
    (label) =>
      label !== "" && label.length <= 200 && label.isWellFormed() && !/\p{Cc}/u.test(label),
    "must be 1 to 200 characters without control characters",
  ),
  role: z.enum(adminRoles),
  organizations: z.union([
    z.literal("all"),
    z.array(opaqueId).check(z.minLength(1), z.maxLength(1_000)),
  ]),
  transcripts: z.exactOptional(rightToRead),
  expiresAt: time,
  within: z.exactOptional(z.strictObject({ transcripts: z.exactOptional(rightToRead) })),
  idempotencyKey,
  actor,
});

export const adminTokenReference = z.strictObject({ id: opaqueId });

export const adminTokenRevocation = z.strictObject({ id: opaqueId, actor });

const budgetId = text((id) => id !== "" && id.length <= 255, "must be 1 to 255 characters");

export const budgetWriting = z.extend(budgetSchema, { ifMatch, actor });

const unused = z.exactOptional(z.boolean());

export const budgetCreation = z.extend(budgetSchema, { unused, actor });

export const budgetReference = z.strictObject({ id: budgetId });

export const budgetRemoval = z.strictObject({ id: budgetId, ifMatch, actor });

export const budgetFilter = z.strictObject({
  organizationId: z.exactOptional(organizationOrAll),
});

export const budgetStatusQuery = z.strictObject({
  id: budgetId,
  subject: z.exactOptional(z.string()),
  at: time,
});

export const rateLimitWriting = z
  .strictObject({ ...rateLimitMembers, ifMatch, actor })
  .check(...rateLimitChecks);

export const rateLimitCreation = z
  .strictObject({ ...rateLimitMembers, unused, actor })
  .check(...rateLimitChecks);

export const rateLimitStatusQuery = z.strictObject({
  id: budgetId,
  subject: z.exactOptional(z.string()),
});

export const budgetRaising = z.strictObject({
  id: budgetId,
  by: amountSchema,
  until: isoTime,
  ifMatch,
  idempotencyKey,
  actor,
});

export const raiseCancellation = z.strictObject({
  id: budgetId,
  raiseId: opaqueId,
  ifMatch,
  actor,
});

const classRange = z.strictObject(
  { from: z.exactOptional(dataClassName), upTo: z.exactOptional(dataClassName) },
  { error: "must be an object with `from`, `upTo` or both" },
);

const ofRequests = {
  organizationId: organizationOrAll,
  user: selector,
  key: selector,
  source: selector,
  gateway: selector,
  model: z.exactOptional(oneOrMany(modelPattern)),
  connection: z.exactOptional(oneOrMany(connectionOwnership)),
  dataClass: z.exactOptional(classRange),
  from: time,
  to: time,
};

const upTo = (max: number) =>
  text((value) => !isLonger(value, max), `must be at most ${max} characters`);
const metadata = z.record(upTo(64), upTo(512)).check(
  z.refine((pairs) => Object.keys(pairs).length >= 1 && Object.keys(pairs).length <= 16, {
    error: "must have 1 to 16 pairs",
  }),
);

const ofSteps = {
  ...ofRequests,
  session: selector,
  turn: selector,
  decision: selector,
  endpoint: z.exactOptional(oneOrMany(z.enum(endpointNames))),
  vendor: selector,
  host: selector,
  metadata: z.exactOptional(metadata),
};

/** A range that ends before it begins is a mistake: it would select nothing, whatever the records are. */
const inOrder = z.refine<{ readonly from?: string; readonly to?: string }>(
  ({ from, to }) => !(fromIso(from ?? "") > fromIso(to ?? "")),
  { error: "must not be after `to`", path: ["from"] },
);

/** Activity has no `outcome`: every record completed. */
export const activityFilter = z.strictObject(ofSteps).check(inOrder);

export const stepFilter = z
  .strictObject({
    ...ofSteps,
    outcome: z.exactOptional(oneOrMany(z.enum([...stepOutcomes, "open"]))),
  })
  .check(inOrder);

export const decisionFilter = z
  .strictObject({
    ...ofRequests,
    effect: z.exactOptional(z.enum(["permit", "deny"])),
    refused: z.exactOptional(z.boolean()),
    refusal: z.exactOptional(oneOrMany(z.enum(["budget", "rate_limit", "price", "connection"]))),
    rule: selector,
  })
  .check(inOrder);

export const sessionFilter = z.strictObject({
  organizationId: organizationOrAll,
  user: z.exactOptional(opaqueId),
  key: z.exactOptional(opaqueId),
  source: z.exactOptional(opaqueId),
});

export const changeFilter = z
  .strictObject({
    organizationId: organizationOrAll,
    kind: z.exactOptional(oneOrMany(z.enum(changeKinds))),
    from: time,
    to: time,
  })
  .check(inOrder);

/** The dimensions of a summary. An empty list gives one row for everything. */
export const dimensionsSchema: Schema<OneOrMany<SummaryDimension>> = z.union([
  z.enum(summaryDimensions),
  z.array(z.enum(summaryDimensions)),
]);

const ofActivity = summaryDimensions.filter((dimension) => dimension !== "outcome");

/** The dimensions of a summary of activity. */
export const activityDimensionsSchema: Schema<OneOrMany<Exclude<SummaryDimension, "outcome">>> =
  z.union([z.enum(ofActivity), z.array(z.enum(ofActivity))]);

/** The hours to compare with their Steps. */
export const usageReconciling = z
  .strictObject({
    organizationId: organizationOrAll,
    from: time,
    to: time,
    repair: z.exactOptional(z.boolean()),
  })
  .check(inOrder);

/** How to divide a series. */
export const seriesOptions = z.strictObject({
  bucket: z.enum(["hour", "day"]),
  by: z.exactOptional(dimensionsSchema),
});

/** The format of an export. */
export const exportOptions = z.strictObject({ format: z.enum(["csv", "jsonl"]) });

const detail = z.exactOptional(count);

const details = {
  cachedTokens: detail,
  reasoningTokens: detail,
  cacheWriteTokens: detail,
  cacheWrite1hTokens: detail,
  audioInputTokens: detail,
  audioOutputTokens: detail,
  imageInputTokens: detail,
  imageOutputTokens: detail,
} satisfies Readonly<Record<keyof UsageDetails, typeof detail>>;

/** The tokens of a correction. Each detail is part of its count. */
const usage = z.strictObject({
  promptTokens: count,
  completionTokens: count,
  ...details,
});

export const stepCorrection = z
  .strictObject({
    organizationId: opaqueId,
    id: opaqueId,
    attempt: z.exactOptional(wholeNumber(1)),
    usage: z.exactOptional(usage),
    costNanoUsd: z.exactOptional(count),
    reason: opaqueId,
    idempotencyKey,
    actor,
  })
  .check(
    z.refine(({ usage, costNanoUsd }) => usage !== undefined || costNanoUsd !== undefined, {
      error: "or `costNanoUsd` must be given",
      path: ["usage"],
    }),
  );

export const repricing = z.strictObject({
  prices: z.custom<object>((value) => typeof value === "object" && value !== null, {
    error: "must be a price book or a table of prices",
  }),
  apply: z.exactOptional(z.boolean()),
  actor,
});

/** The page of a list to return. */
export const pagingSchema = z.strictObject({
  cursor: z.exactOptional(z.nullable(z.string())),
  limit: z.exactOptional(
    z
      .int({ error: "must be a whole number from 1 to 1,000" })
      .check(
        z.minimum(1, { error: "must be a whole number from 1 to 1,000" }),
        z.maximum(1_000, { error: "must be a whole number from 1 to 1,000" }),
      ),
  ),
});

/** The schemas of the first argument of administrative methods, by method: options such as those of `keys.create`, and filters. */
export const administrationSchemas = {
  "keys.create": keyCreation,
  "keys.get": keyReference,
  "keys.list": keyFilter,
  "keys.update": keyChange,
  "keys.rotate": keyRotation,
  "keys.revoke": z.union([keyRevocation, keysOfUser]),
  "connections.set": connectionSetting,
  "connections.get": connectionReference,
  "connections.list": organizationFilter,
  "connections.remove": connectionRemoval,
  "connections.reseal": acting,
  "adminTokens.create": adminTokenCreation,
  "adminTokens.get": adminTokenReference,
  "adminTokens.revoke": adminTokenRevocation,
  "budgets.create": budgetCreation,
  "budgets.get": budgetReference,
  "budgets.list": budgetFilter,
  "budgets.update": budgetWriting,
  "budgets.remove": budgetRemoval,
  "budgets.status": budgetStatusQuery,
  "budgets.raise": budgetRaising,
  "budgets.raises": budgetReference,
  "budgets.cancelRaise": raiseCancellation,
  "rateLimits.create": rateLimitCreation,
  "rateLimits.get": budgetReference,
  "rateLimits.list": budgetFilter,
  "rateLimits.update": rateLimitWriting,
  "rateLimits.remove": budgetRemoval,
  "rateLimits.status": rateLimitStatusQuery,
  "activity.list": activityFilter,
  "steps.list": stepFilter,
  "steps.get": recordReference,
  "steps.content": contentReference,
  "steps.correct": stepCorrection,
  "decisions.list": decisionFilter,
  "decisions.get": recordReference,
  "sessions.list": sessionFilter,
  "sessions.get": recordReference,
  "sessions.lineage": recordReference,
  "sessions.transcript": transcriptReference,
  "changes.list": changeFilter,
  "usage.reconcile": usageReconciling,
} as const satisfies Readonly<Record<string, Schema<unknown>>>;
