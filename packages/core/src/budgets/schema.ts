import { type BudgetScope, budgetModes, budgetPeriods, budgetSubjects } from "../domain/budget.ts";
import { ratePeriods, rateSubjects } from "../domain/rate-limit.ts";
import type { Schema } from "../input/read.ts";
import {
  connectionOwnership,
  modelPattern,
  oneOrMany,
  opaqueId,
  part,
  text,
  usd,
  wholeNumber,
} from "../input/values.ts";
import * as z from "../input/z.ts";
import type { RateLimitConfiguration } from "./rate-limits.ts";
import type { BudgetConfiguration, BudgetLimit } from "./read-budget.ts";

const selector = z.exactOptional(oneOrMany(opaqueId));

const selectors = {
  organization: selector,
  user: selector,
  key: selector,
  gateway: selector,
  connection: z.exactOptional(connectionOwnership),
  model: z.exactOptional(oneOrMany(modelPattern)),
};

const scope: Schema<BudgetScope> = z.strictObject({
  ...selectors,
  each: z.exactOptional(z.enum(budgetSubjects)),
});

/** An amount in exactly one unit: a limit, or a raise of it. */
export const amountSchema: Schema<BudgetLimit> = z.union(
  [
    z.strictObject({ usd }),
    z.strictObject({ tokens: wholeNumber(0) }),
    z.strictObject({ requests: wholeNumber(0) }),
  ],
  {
    error:
      "must be one of { usd }, from 0 to 9007199 with at most 9 decimals, { tokens } and { requests }, whole numbers from 0",
  },
);

/** A URL would drop `.` and `..`, so the admin API couldn't reach their budget. */
const id = text(
  (value) => /^(?!\.{1,2}$)[\x21-\x7e]{1,255}$/.test(value),
  "must be 1 to 255 visible ASCII characters, and not `.` or `..`",
);

/** A budget, configured or created. */
export const budgetSchema = z.strictObject({
  id,
  scope: z.exactOptional(scope),
  limit: amountSchema,
  period: z.enum(budgetPeriods),
  mode: z.exactOptional(z.enum(budgetModes)),
  warnAt: z.exactOptional(z.array(part).check(z.maxLength(10))),
}) satisfies Schema<BudgetConfiguration>;

/** The highest limit of a rate limit. Up to here, its pace is counted exactly. */
const maxRate = 1_000_000_000;

/** The members of a rate limit, configured or created. */
export const rateLimitMembers = {
  id,
  scope: z.exactOptional(
    z.strictObject({
      ...selectors,
      each: z.exactOptional(z.enum(rateSubjects)),
    }),
  ),
  limit: z.union(
    [
      z.strictObject({ requests: wholeNumber(0, maxRate) }),
      z.strictObject({ tokens: wholeNumber(0, maxRate) }),
      z.strictObject({ concurrentSteps: wholeNumber(0) }),
    ],
    {
      error:
        "must be one of { requests }, { tokens } and { concurrentSteps }, a whole number from 0 to 1000000000",
    },
  ),
  per: z.exactOptional(z.enum(ratePeriods)),
  burst: z.exactOptional(wholeNumber(1, maxRate)),
};

type Limited = Pick<RateLimitConfiguration, "limit" | "per" | "burst">;

/** The rules between these members. */
export const rateLimitChecks = [
  z.refine<Limited>(({ limit, per }) => "concurrentSteps" in limit || per !== undefined, {
    path: ["per"],
    error: "must be one of second, minute, hour, day",
  }),
  z.refine<Limited>(
    ({ limit, per, burst }) =>
      !("concurrentSteps" in limit) || (per === undefined && burst === undefined),
    { path: ["limit"], error: "must not have `per` or `burst` next to concurrentSteps" },
  ),
] as const;

export const rateLimitSchema = z
  .strictObject(rateLimitMembers)
  .check(...rateLimitChecks) satisfies Schema<RateLimitConfiguration>;
