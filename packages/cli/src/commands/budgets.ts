import type { BudgetRecord, BudgetScope, BudgetStatus } from "@tollgate/core";
import type { Command } from "commander";
import { type ListOptions, oneOf, pageOf, repeated, wholeNumber } from "../arguments.ts";
import { CommandError } from "../failure.ts";
import { optionsOf } from "../globals.ts";
import { withGateway } from "../open-gateway.ts";
import { print, printPage, printRecord } from "../print.ts";
import type { Column } from "../table.ts";
import { usd } from "../usd.ts";

const columns: readonly Column<BudgetRecord>[] = [
  { heading: "id", of: (budget) => budget.id },
  { heading: "limit", of: (budget) => amount(budget.limit, budget.unit), right: true },
  { heading: "period", of: (budget) => budget.period },
  { heading: "mode", of: (budget) => budget.mode },
  { heading: "scope", of: (budget) => JSON.stringify(budget.scope) },
  { heading: "origin", of: (budget) => budget.origin },
];

const statusColumns: readonly Column<BudgetStatus>[] = [
  { heading: "counts", of: (status) => status.subject || "all" },
  { heading: "limit", of: (status) => amount(status.limit, status.unit), right: true },
  { heading: "settled", of: (status) => amount(status.settled, status.unit), right: true },
  { heading: "held", of: (status) => amount(status.held, status.unit), right: true },
  { heading: "left", of: (status) => amount(status.remaining, status.unit), right: true },
  { heading: "since", of: (status) => status.periodStart },
  { heading: "until", of: (status) => status.resetsAt },
];

const periods = oneOf("hour", "day", "week", "month", "total");
const modes = oneOf("hard", "soft");
const ownerships = oneOf("platform", "customer");
const subjects = oneOf("key", "user", "organization");

interface CreateOptions extends BudgetScope {
  readonly id: string;
  readonly usd?: string;
  readonly tokens?: number;
  readonly requests?: number;
  readonly period: ReturnType<typeof periods>;
  readonly mode: ReturnType<typeof modes>;
}

export function defineBudgets(program: Command): void {
  const noun = program.command("budgets").description("what may be spent");
  noun
    .command("list", { isDefault: true })
    .description("all budgets")
    .option("--limit <count>", "rows of a page", wholeNumber(1, 1_000))
    .option("--cursor <cursor>", "where the last page ended")
    .action(list);
  noun
    .command("status <id>")
    .description("where a budget stands in its current period")
    .option("--limit <count>", "rows of a page", wholeNumber(1, 1_000))
    .option("--cursor <cursor>", "where the last page ended")
    .action(status);
  noun
    .command("create <id>")
    .description("make a budget that counts from the next request on")
    .option("--usd <amount>", "its limit in US dollars, such as 12.50")
    .option("--tokens <count>", "its limit in tokens", wholeNumber(0))
    .option("--requests <count>", "its limit in requests", wholeNumber(0))
    .requiredOption("--period <period>", "hour, day, week, month or total", periods)
    .option("--mode <mode>", "hard refuses, soft records", modes, "hard")
    .option("--organization <id>", "counts only this organization", repeated)
    .option("--user <id>", "counts only this user", repeated)
    .option("--key <id>", "counts only this key", repeated)
    .option("--gateway <name>", "counts only this gateway", repeated)
    .option("--model <pattern>", "counts only models that match", repeated)
    .option("--connection <owner>", "counts only accounts of: platform or customer", ownerships)
    .option("--each <subject>", "a counter for each: key, user or organization", subjects)
    .action(create);
  noun.command("remove <id>").description("stop a budget, keep its history").action(remove);
}

async function list(_options: unknown, command: Command): Promise<void> {
  const options = optionsOf<ListOptions>(command);
  await withGateway(options.config, async (gateway) => {
    const page = await gateway.budgets.list({}, pageOf(options));
    printPage(options.json, page, columns);
  });
}

async function status(id: string, _options: unknown, command: Command): Promise<void> {
  const options = optionsOf<ListOptions>(command);
  await withGateway(options.config, async (gateway) => {
    const page = await gateway.budgets.status({ id }, pageOf(options));
    printPage(options.json, page, statusColumns);
  });
}

async function create(id: string, _options: unknown, command: Command): Promise<void> {
  const options = optionsOf<CreateOptions>(command);
  const { config, json, actor, usd: _usd, tokens: _tokens, requests: _requests, ...rest } = options;
  const { period, mode, ...scope } = rest;
  const budget = { id, scope, limit: limitOf(options), period, mode, actor };
  await withGateway(config, async (gateway) =>
    printRecord(json, await gateway.budgets.create(budget)),
  );
}

async function remove(id: string, _options: unknown, command: Command): Promise<void> {
  const { config, json, actor } = optionsOf(command);
  await withGateway(config, async (gateway) => {
    await gateway.budgets.remove({ id, actor });
    print(json, { id, removed: true }, `removed ${id}`);
  });
}

function limitOf({ usd: dollars, tokens, requests }: CreateOptions) {
  const limits = [
    dollars === undefined ? [] : { usd: dollars },
    tokens === undefined ? [] : { tokens },
    requests === undefined ? [] : { requests },
  ].flat();
  const [limit, ...others] = limits;
  if (limit !== undefined && others.length === 0) return limit;
  throw new CommandError("give one limit: --usd, --tokens or --requests", 2);
}

function amount(value: number, unit: BudgetRecord["unit"]): string | null {
  return unit === "usd" ? usd(value) : `${value} ${unit}`;
}
