import {
  type BudgetConfiguration,
  type BudgetLimit,
  type BudgetScope,
  budgetPeriods,
} from "@tollgate/core";
import { type Command, InvalidArgumentError } from "commander";
import { oneOf, repeated, wholeNumber } from "./arguments.ts";
import { CommandError } from "./failure.ts";

const periods = oneOf(...budgetPeriods);
const modes = oneOf("hard", "soft");
const ownerships = oneOf("platform", "customer");
const subjects = oneOf("key", "user", "organization");

/** An amount in one of three units. */
export interface AmountOptions {
  readonly usd?: string;
  readonly tokens?: number;
  readonly requests?: number;
}

/** What a budget is made of, on the command line. */
export interface BudgetOptions extends AmountOptions, BudgetScope {
  readonly period: ReturnType<typeof periods>;
  readonly mode: ReturnType<typeof modes>;
  readonly warnAt?: readonly number[];
}

/** Adds the options of an amount. */
export function withAmount(command: Command, what: string): Command {
  return command
    .option("--usd <amount>", `${what} in US dollars, such as 12.50`)
    .option("--tokens <count>", `${what} in tokens`, wholeNumber(0))
    .option("--requests <count>", `${what} in requests`, wholeNumber(0));
}

/** Adds the options of a whole budget. */
export function withBudget(command: Command): Command {
  return withAmount(command, "its limit")
    .requiredOption("--period <period>", "hour, day, week, month or total", periods)
    .option("--mode <mode>", "hard refuses, soft records", modes, "hard")
    .option("--warn-at <part>", "warns at this part of the limit, such as 0.8", fractions)
    .option("--organization <id>", "counts only this organization", repeated)
    .option("--user <id>", "counts only this user", repeated)
    .option("--key <id>", "counts only this key", repeated)
    .option("--gateway <name>", "counts only this gateway", repeated)
    .option("--model <pattern>", "counts only models that match", repeated)
    .option("--connection <owner>", "counts only accounts of: platform or customer", ownerships)
    .option("--each <subject>", "a counter for each: key, user or organization", subjects);
}

/** The budget that the options describe. */
export function budgetOf(id: string, options: BudgetOptions): BudgetConfiguration {
  const { period, mode, warnAt, usd: _usd, tokens: _tokens, requests: _requests } = options;
  const { organization, user, key, gateway, model, connection, each } = options;
  const selectors = { organization, user, key, gateway, model, connection, each };
  const scope = Object.fromEntries(
    Object.entries(selectors).filter(([, value]) => value !== undefined),
  );
  return {
    id,
    scope,
    limit: amountOf(options),
    period,
    mode,
    ...(warnAt === undefined ? {} : { warnAt }),
  };
}

/** The one amount that was given. */
export function amountOf({ usd, tokens, requests }: AmountOptions): BudgetLimit {
  const amounts = [
    usd === undefined ? [] : { usd },
    tokens === undefined ? [] : { tokens },
    requests === undefined ? [] : { requests },
  ].flat();
  const [amount, ...others] = amounts;
  if (amount !== undefined && others.length === 0) return amount;
  throw new CommandError("give one of --usd, --tokens and --requests", 2);
}

/** A part of a whole; may be given several times. */
function fractions(text: string, before: readonly number[] | undefined): readonly number[] {
  const fraction = /^\d?\.?\d{1,6}$/.test(text) ? Number(text) : Number.NaN;
  if (fraction > 0 && fraction <= 1) return [...(before ?? []), fraction];
  throw new InvalidArgumentError("It must be above 0 and up to 1.");
}
