import type { BudgetConfiguration, BudgetLimit, BudgetScope } from "@tollgate/core";
import {
  budgetModes,
  budgetPeriods,
  budgetSubjects,
  connectionOwnerships,
} from "@tollgate/core/store";
import { type Command, InvalidArgumentError } from "commander";
import { dollars, oneOf, repeated, wholeNumber } from "./arguments.ts";
import { CommandError } from "./failure.ts";

const periods = oneOf(...budgetPeriods);
const modes = oneOf(...budgetModes);
const ownerships = oneOf(...connectionOwnerships);
const subjects = oneOf(...budgetSubjects);

/** An amount in one of three units. */
export interface AmountOptions {
  readonly usd?: string;
  readonly tokens?: number;
  readonly requests?: number;
}

/** The options of a budget. */
export interface BudgetOptions extends AmountOptions, BudgetScope {
  readonly period: ReturnType<typeof periods>;
  readonly mode: ReturnType<typeof modes>;
  readonly warnAt?: readonly number[];
}

/** Adds the options for an amount. */
export function withAmount(command: Command, what: string): Command {
  return command
    .option("--usd <amount>", `${what} in US dollars, such as 12.50`, dollars)
    .option("--tokens <count>", `${what} in tokens`, wholeNumber(0))
    .option("--requests <count>", `${what} in requests`, wholeNumber(0));
}

/** Adds the options for a budget. */
export function withBudget(command: Command): Command {
  return withScope(withAmount(command, "limit"))
    .requiredOption("--period <period>", "hour, day, week, month or total", periods)
    .option("--mode <mode>", "hard rejects requests, soft only counts", modes, "hard")
    .option(
      "--warn-at <part>",
      "warn at this fraction of the limit, such as 0.8 (repeatable)",
      fractions,
    )
    .option(
      "--each <subject>",
      "use a separate counter for each key, user or organization",
      subjects,
    );
}

/** The options of a scope, without the subjects of `each`. */
export type ScopeOptions = Omit<BudgetScope, "each">;

/** Adds the options of a scope. */
export function withScope(command: Command): Command {
  return command
    .option("--organization <id>", "count only this organization (repeatable)", repeated)
    .option("--user <id>", "count only this user (repeatable)", repeated)
    .option("--key <id>", "count only this key (repeatable)", repeated)
    .option("--gateway <name>", "count only this gateway (repeatable)", repeated)
    .option("--model <pattern>", "count only matching models (repeatable)", repeated)
    .option(
      "--connection <owner>",
      "count only calls on the platform's or the customer's account",
      ownerships,
    );
}

/** Builds the scope from the options. */
export function scopeOf<Each>(
  options: ScopeOptions & { readonly each?: Each },
): ScopeOptions & { readonly each?: Each } {
  const { organization, user, key, gateway, model, connection, each } = options;
  const selectors = { organization, user, key, gateway, model, connection, each };
  return Object.fromEntries(Object.entries(selectors).filter(([, value]) => value !== undefined));
}

/** Builds the budget from the options. */
export function budgetOf(id: string, options: BudgetOptions): BudgetConfiguration {
  const { period, mode, warnAt, usd: _usd, tokens: _tokens, requests: _requests } = options;
  return {
    id,
    scope: scopeOf(options),
    limit: amountOf(options),
    period,
    mode,
    ...(warnAt === undefined ? {} : { warnAt }),
  };
}

/** Returns the only amount in the options. */
export function amountOf({ usd, tokens, requests }: AmountOptions): BudgetLimit {
  const amounts = [
    usd === undefined ? [] : { usd },
    tokens === undefined ? [] : { tokens },
    requests === undefined ? [] : { requests },
  ].flat();
  const [amount, ...others] = amounts;
  if (amount !== undefined && others.length === 0) return amount;
  throw new CommandError("pass exactly one of --usd, --tokens and --requests", 2);
}

/** Parses a fraction of the limit. The option can be repeated. */
function fractions(text: string, before: readonly number[] | undefined): readonly number[] {
  const fraction = /^\d?\.?\d{1,6}$/.test(text) ? Number(text) : Number.NaN;
  if (fraction > 0 && fraction <= 1) return [...(before ?? []), fraction];
  throw new InvalidArgumentError("It must be greater than 0 and at most 1.");
}
