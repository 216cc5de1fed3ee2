import { pricedKinds } from "@tollgate/core";
import { adminRoles, changeKinds } from "@tollgate/core/administration";
import type { Obligations } from "@tollgate/core/policy";
import type { Json, UsageDetails } from "@tollgate/core/provider";
import { type Schema, z } from "@tollgate/core/schemas";
import {
  budgetModes,
  budgetPeriods,
  budgetSubjects,
  budgetUnits,
  connectionOwnerships,
  endpointNames,
  leadingSystems,
  ratePeriods,
  rateSubjects,
  rateUnits,
  stepOutcomes,
} from "@tollgate/core/store";

/** The schemas of the records that the admin API answers with. A test compares each with the type of core. */

/** The lists of records are read-only, as in their types. */
export function listOf<Row>(row: Schema<Row>): Schema<readonly Row[]> {
  return z.array(row);
}

const text = z.string();
const textOrNull = z.nullable(text);
const time = z.string();
const timeOrNull = z.nullable(time);
export const count = z.int().check(z.minimum(0));
/** A number that can be below 0. */
const difference = z.int();
const countOrNull = z.nullable(count);
const ownership = z.enum(connectionOwnerships);
const texts = listOf(text);
const basisOrNull = z.nullable(z.enum(["reported", "estimated"]));
const outcome = z.enum([...stepOutcomes, "open"]);
const metadata = z.record(text, text);

export const keyRecord = z.object({
  id: text,
  organizationId: text,
  userId: text,
  label: text,
  prefix: text,
  defaultDataClass: text,
  minimumDataClass: text,
  models: z.nullable(texts),
  aliases: z.nullable(z.record(text, text)),
  leadingSystem: z.nullable(z.enum(leadingSystems)),
  createdAt: time,
  expiresAt: timeOrNull,
  revokedAt: timeOrNull,
  lastUsedAt: timeOrNull,
});

export const keyWithSecret = z.object({ key: keyRecord, secret: text });
/** The secret is null in the answer to a repeat. */
export const createdKey = z.object({ key: keyRecord, secret: textOrNull });

export const adminTokenRecord = z.object({
  id: text,
  label: text,
  prefix: text,
  role: z.enum(adminRoles),
  organizations: z.union([z.literal("all"), texts]),
  transcripts: z.nullable(z.object({ upTo: text })),
  createdAt: time,
  expiresAt: time,
  revokedAt: timeOrNull,
  lastUsedAt: timeOrNull,
});

/** The secret is null in the answer to a repeat. */
export const createdAdminToken = z.object({ token: adminTokenRecord, secret: textOrNull });

export const modelRecord = z.object({
  id: text,
  connection: ownership,
  price: z.nullable(
    z.object({
      source: z.enum(["custom", "catalog"]),
      version: textOrNull,
      rates: z.record(text, count),
      request: count,
    }),
  ),
  maxOutputTokens: countOrNull,
  reasons: z.nullable(z.boolean()),
});

const anything = z.record(text, z.unknown());

export const policyRecord = z.object({
  version: text,
  sessions: z.enum(["ignore", "read", "raise"]),
  rules: z.nullable(
    listOf(
      z.object({
        effect: z.enum(["permit", "forbid"]),
        id: text,
        match: anything,
        options: anything,
      }),
    ),
  ),
});

export const gatewayStatus = z.object({
  openSteps: count,
  admitted: count,
  drains: count,
  closing: z.boolean(),
  leaseAgeMs: z.number(),
  unsealedMs: countOrNull,
  store: z.object({ waiting: count, inUse: count, most: countOrNull }),
});

export const openApi = anything;

export const connectionRecord = z.object({
  id: text,
  organizationId: text,
  gateway: text,
  createdAt: time,
  updatedAt: time,
  keyId: text,
});

export const revokedKeys = z.object({ revoked: count });
export const resealResult = z.object({ resealed: count, failed: count });

const selector = z.exactOptional(z.union([text, texts]));

const scope = {
  organization: selector,
  user: selector,
  key: selector,
  gateway: selector,
  connection: z.exactOptional(ownership),
  model: selector,
};

const budgetUnit = z.enum(budgetUnits);
const origin = z.enum(["declared", "created"]);

export const budgetRecord = z.object({
  id: text,
  scope: z.object({ ...scope, each: z.exactOptional(z.enum(budgetSubjects)) }),
  unit: budgetUnit,
  limit: count,
  period: z.enum(budgetPeriods),
  mode: z.enum(budgetModes),
  warnAt: listOf(z.number()),
  origin,
});

export const budgetRaise = z.object({
  id: text,
  budgetId: text,
  unit: budgetUnit,
  amount: count,
  raisedAt: time,
  until: time,
  actor: textOrNull,
});

export const budgetStatus = z.object({
  budgetId: text,
  subject: text,
  unit: budgetUnit,
  limit: count,
  settled: count,
  held: count,
  remaining: difference,
  periodStart: time,
  resetsAt: timeOrNull,
});

export const budgetReconciliation = z.object({
  counters: count,
  drift: listOf(
    z.object({
      budgetId: text,
      subject: text,
      unit: z.enum([...budgetUnits, "steps", "requests_pace", "tokens_pace"]),
      periodStart: time,
      settled: difference,
      held: difference,
      ledger: z.object({ settled: difference, held: difference }),
    }),
  ),
});

const rateUnit = z.enum(rateUnits);

export const rateLimitRecord = z.object({
  id: text,
  scope: z.object({
    ...scope,
    each: z.exactOptional(z.enum(rateSubjects)),
  }),
  unit: rateUnit,
  limit: count,
  per: z.nullable(z.enum(ratePeriods)),
  burst: count,
  origin,
});

export const rateLimitStatus = z.object({
  rateLimitId: text,
  subject: text,
  unit: rateUnit,
  limit: count,
  burst: count,
  remaining: count,
  resetMs: z.number(),
});

const detail = z.exactOptional(count);

const details = {
  cachedTokens: detail,
  cacheWriteTokens: detail,
  cacheWrite1hTokens: detail,
  reasoningTokens: detail,
  audioInputTokens: detail,
  audioOutputTokens: detail,
  imageInputTokens: detail,
  imageOutputTokens: detail,
} satisfies Readonly<Record<keyof UsageDetails, typeof detail>>;

const usage = {
  promptTokens: count,
  completionTokens: count,
  totalTokens: count,
  ...details,
};

const listPrice = z.object({
  kind: z.enum(pricedKinds),
  quantity: count,
  nanoUsd: count,
});

const listPrices = z.nullable(listOf(listPrice));

const figures = { ...usage, costNanoUsd: countOrNull, listPrices };

const correction = z.object({ id: text, at: time, actor: textOrNull, reason: text, ...figures });

const attempt = z.object({
  ...usage,
  number: count,
  decisionId: text,
  model: text,
  connection: ownership,
  billedTo: ownership,
  outputCap: count,
  outputCapFrom: z.enum(["client", "policy", "model", "limit", "budget"]),
  host: textOrNull,
  bodySha256: textOrNull,
  providerRequestId: textOrNull,
  providerModel: textOrNull,
  outcome,
  reason: textOrNull,
  usageBasis: basisOrNull,
  costNanoUsd: countOrNull,
  listPrices,
  costBasis: basisOrNull,
  priceSource: z.nullable(z.enum(["provider", "custom", "catalog", "unknown"])),
  reportedCostNanoUsd: countOrNull,
  requestedServiceTier: text,
  serviceTier: textOrNull,
  startedAt: time,
  durationMs: z.nullable(z.number()),
  timeToFirstTokenMs: z.nullable(z.number()),
  toolCalls: count,
  error: z.nullable(z.object({ message: textOrNull, commitment: text })),
  recorded: z.nullable(z.object(figures)),
  corrections: listOf(correction),
});

const ofSteps = {
  ...usage,
  id: text,
  organizationId: text,
  userId: text,
  keyId: text,
  keyLabel: text,
  source: text,
  endpoint: z.enum(endpointNames),
  stream: z.boolean(),
  sessionId: textOrNull,
  turnId: textOrNull,
  stepNumber: countOrNull,
  droppedFields: z.record(text, count),
  metadata,
  idempotencyKeySha256: textOrNull,
  retryOf: textOrNull,
  dataClass: text,
  decisionId: text,
  requestedModel: text,
  model: text,
  finishReason: textOrNull,
  usageBasis: basisOrNull,
  costNanoUsd: countOrNull,
  costBasis: basisOrNull,
  serviceTier: textOrNull,
  billedTo: ownership,
  openedAt: time,
  settledAt: timeOrNull,
};

export const stepRecord = z.object({
  ...ofSteps,
  outcome,
  reason: textOrNull,
  attempts: listOf(attempt),
  head: textOrNull,
  replyHead: textOrNull,
});

export const activityRecord = z.object({
  ...ofSteps,
  gateway: text,
  provider: text,
  host: textOrNull,
  connection: ownership,
  priceSource: attempt.shape.priceSource,
  durationMs: z.number(),
  timeToFirstTokenMs: z.nullable(z.number()),
  toolCalls: count,
});

const group = z.exactOptional(textOrNull);

const sumsOf = (count: Schema<number>) => ({
  steps: count,
  attempts: count,
  promptTokens: count,
  completionTokens: count,
  totalTokens: count,
  cachedTokens: count,
  cacheWriteTokens: count,
  cacheWrite1hTokens: count,
  reasoningTokens: count,
  audioInputTokens: count,
  audioOutputTokens: count,
  imageInputTokens: count,
  imageOutputTokens: count,
  costNanoUsd: count,
  unknownCosts: count,
  estimated: count,
  toolCalls: count,
  durationMs: z.number(),
});

export const usageSummary = z.object({
  organization: group,
  user: group,
  key: group,
  session: group,
  source: group,
  dataClass: group,
  day: group,
  hour: group,
  outcome: group,
  gateway: group,
  vendor: group,
  model: group,
  connection: group,
  host: group,
  keyLabel: group,
  ...sumsOf(count),
});

export const usageBucket = z.object({
  ...usageSummary.shape,
  latencies: z.object({ duration: listOf(count), timeToFirstToken: listOf(count) }),
});

export const usageReconciliation = z.object({
  steps: count,
  differences: listOf(
    z.object({
      organizationId: text,
      hour: text,
      userId: text,
      keyId: text,
      models: texts,
      missing: z.object(sumsOf(difference)),
    }),
  ),
  isCut: z.boolean(),
  repaired: count,
});

export const repricedAttempt = z.object({
  organizationId: text,
  id: text,
  attempt: count,
  startedAt: time,
  model: text,
  priceSource: z.enum(["provider", "custom", "catalog", "unknown"]),
  costNanoUsd: countOrNull,
  repricedNanoUsd: countOrNull,
  differenceNanoUsd: difference,
  corrected: z.boolean(),
});

const json = z.custom<Json>((value) => value !== undefined);
const state = z.exactOptional(
  z.object({
    from: textOrNull,
    fields: z.record(text, json),
    omittedBytes: z.exactOptional(count),
  }),
);
const textPart = z.object({ type: z.literal("text"), text, state });
const refusalPart = z.object({ type: z.literal("refusal"), refusal: text, state });
const imagePart = z.object({
  type: z.literal("image_url"),
  image_url: z.object({ url: text, detail: z.exactOptional(text) }),
  state,
});
const toolCall = z.object({
  id: text,
  type: z.literal("function"),
  function: z.object({ name: text, arguments: text }),
  state,
});
const name = z.exactOptional(text);
const shown = z.union([text, listOf(z.union([textPart, imagePart]))]);

const message = z.discriminatedUnion("role", [
  z.object({
    role: z.enum(["system", "developer"]),
    content: z.union([text, listOf(textPart)]),
    name,
    state,
  }),
  z.object({ role: z.literal("user"), content: shown, name, state }),
  z.object({
    role: z.literal("assistant"),
    content: z.exactOptional(z.nullable(z.union([text, listOf(z.union([textPart, refusalPart]))]))),
    refusal: z.exactOptional(textOrNull),
    name,
    tool_calls: z.exactOptional(listOf(toolCall)),
    state,
  }),
  z.object({ role: z.literal("tool"), tool_call_id: text, content: shown, state }),
]);
const messages = z.nullable(listOf(message));

const missing = z.exactOptional(z.enum(["none", "open", "digest", "erased"]));

export const stepContent = z.object({
  id: text,
  sessionId: textOrNull,
  outcome,
  instructions: textOrNull,
  input: messages,
  answer: messages,
  reasoning: textOrNull,
  missing: z.object({
    instructions: missing,
    input: missing,
    answer: missing,
    reasoning: missing,
  }),
});

export const sessionRecord = z.object({
  id: text,
  organizationId: text,
  userId: text,
  keyId: text,
  source: text,
  head: text,
  length: count,
  dataClasses: texts,
  createdAt: time,
  updatedAt: time,
  branchedFromSessionId: textOrNull,
  commonLength: count,
});

export const transcriptEntry = z.object({
  stepId: text,
  kind: z.enum(["request", "reply"]),
  from: count,
  count,
  messages,
});

const facts = z.object({
  organization: text,
  user: text,
  key: text,
  source: text,
  dataClass: text,
  session: z.exactOptional(z.object({ dataClass: text })),
  gateway: text,
  vendor: text,
  model: text,
  listed: z.boolean(),
  connection: ownership,
  store: z.exactOptional(z.boolean()),
  tools: z.boolean(),
  images: z.boolean(),
  structuredOutput: z.boolean(),
  embeddings: z.exactOptional(z.literal(true)),
  serviceTier: text,
  estimatedInputTokens: count,
  estimatedOutputTokens: count,
  estimatedCostNanoUsd: countOrNull,
});

const refusal = z.discriminatedUnion("by", [
  z.object({
    by: z.literal("budget"),
    budgetId: text,
    subject: text,
    unit: budgetUnit,
    needed: count,
    left: difference,
  }),
  z.object({
    by: z.literal("rate_limit"),
    rateLimitId: text,
    subject: text,
    unit: rateUnit,
    needed: count,
    left: difference,
  }),
  z.object({ by: z.literal("price"), param: z.enum(["model", "service_tier"]) }),
  z.object({ by: z.literal("connection") }),
]);

const obligations = {
  fallbacks: z.exactOptional(texts),
  maxOutputTokens: detail,
  transcript: z.exactOptional(z.enum(["full", "digest"])),
  serviceTier: z.exactOptional(text),
  connection: z.exactOptional(z.literal("customer")),
} satisfies Readonly<Record<keyof Obligations, unknown>>;

export const decisionRecord = z.object({
  id: text,
  at: time,
  effect: z.enum(["permit", "deny"]),
  rules: texts,
  reason: z.exactOptional(text),
  obligations: z.exactOptional(z.object(obligations)),
  facts,
  policyVersion: text,
  firstDecisionId: textOrNull,
  refusal: z.nullable(refusal),
  choice: z.exactOptional(
    z.object({
      requested: text,
      virtual: textOrNull,
      by: z.enum(["order", "weight", "latency", "session", "alias"]),
      latencyMs: z.nullable(z.number()),
      passedOver: listOf(z.object({ model: text, reason: text, decisionId: textOrNull })),
    }),
  ),
});

export const changeRecord = z.object({
  id: text,
  at: time,
  organizationId: textOrNull,
  kind: z.enum(changeKinds),
  actor: textOrNull,
  subject: textOrNull,
  facts: z.record(text, z.unknown()),
});
