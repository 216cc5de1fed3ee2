import { type BudgetScope, budgetPeriods } from "../domain/budget.ts";
import type { Schema } from "../input/read.ts";
import {
  connectionOwnership,
  modelPattern,
  oneOrMany,
  opaqueId,
  text,
  usd,
  wholeNumber,
} from "../input/values.ts";
import * as z from "../input/z.ts";
import type { BudgetConfiguration, BudgetLimit } from "./read-budget.ts";

const selector = z.exactOptional(oneOrMany(opaqueId));

const scope: Schema<BudgetScope> = z.strictObject({
  organization: selector,
  user: selector,
  key: selector,
  gateway: selector,
  connection: z.exactOptional(connectionOwnership),
  model: z.exactOptional(oneOrMany(modelPattern)),
  each: z.exactOptional(z.enum(["key", "user", "organization"])),
});

/** An amount in exactly one unit: a limit, or a raise of it. */
export const amountSchema: Schema<BudgetLimit> = z.union(
  [
    z.strictObject({ usd }),
    z.strictObject({ tokens: wholeNumber(0) }),
    z.strictObject({ requests: wholeNumber(0) }),
  ],
  { error: "must be one of { usd }, { tokens } and { requests }, a whole amount from 0" },
);

const part = z
  .number({ error: "must be a number above 0 and up to 1" })
  .check(z.refine((value) => value > 0 && value <= 1, { error: "must be above 0 and up to 1" }));

/** A budget, configured or created. */
export const budgetSchema = z.strictObject({
  id: text((id) => /^[\x21-\x7e]{1,255}$/.test(id), "must be 1 to 255 visible ASCII characters"),
  scope: z.exactOptional(scope),
  limit: amountSchema,
  period: z.enum(budgetPeriods),
  mode: z.exactOptional(z.enum(["hard", "soft"])),
  warnAt: z.exactOptional(z.array(part).check(z.maxLength(10))),
}) satisfies Schema<BudgetConfiguration>;
