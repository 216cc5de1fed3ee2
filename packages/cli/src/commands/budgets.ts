import type {
  Administration,
  BudgetConfiguration,
  BudgetDrift,
  BudgetRaiseRecord,
  BudgetRecord,
  BudgetStatus,
  BudgetStatusQuery,
  WithActor,
} from "@tollgate/core";
import type { Command } from "commander";
import { listAction } from "../actions.ts";
import { isoTime, type ListOptions, listCommand, pageOf, pageOptions } from "../arguments.ts";
import {
  type AmountOptions,
  amountOf,
  type BudgetOptions,
  budgetOf,
  withAmount,
  withBudget,
} from "../budget-options.ts";
import { CommandError } from "../failure.ts";
import { optionsOf } from "../globals.ts";
import { print, printPage, printRecord } from "../print.ts";
import { type Column, formatTable } from "../table.ts";
import { amount } from "../usd.ts";
import { withAdministration, withRecords } from "../with-administration.ts";

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

const raiseColumns: readonly Column<BudgetRaiseRecord>[] = [
  { heading: "id", of: (raise) => raise.id },
  { heading: "by", of: (raise) => amount(raise.amount, raise.unit), right: true },
  { heading: "until", of: (raise) => raise.until },
  { heading: "since", of: (raise) => raise.raisedAt },
  { heading: "actor", of: (raise) => raise.actor },
];

const driftColumns: readonly Column<BudgetDrift>[] = [
  { heading: "budget", of: (drift) => drift.budgetId },
  { heading: "counts", of: (drift) => drift.subject || "all" },
  { heading: "since", of: (drift) => drift.periodStart },
  { heading: "settled", of: (drift) => amount(drift.settled, drift.unit), right: true },
  { heading: "ledger", of: (drift) => amount(drift.ledger.settled, drift.unit), right: true },
  { heading: "held", of: (drift) => amount(drift.held, drift.unit), right: true },
  { heading: "ledger", of: (drift) => amount(drift.ledger.held, drift.unit), right: true },
];

export function defineBudgets(program: Command): void {
  const noun = program.command("budgets").description("spending limits");
  listCommand(
    noun,
    "list budgets by id: all, or those that can count an organization's calls",
  ).action(
    listAction<object, BudgetRecord>(
      ({ budgets }, scope, page) => budgets.list(scope, page),
      columns,
    ),
  );
  noun.command("get <id>").description("show one budget").action(get);
  pageOptions(noun.command("status <id>"))
    .description("show the counters of a budget in a period")
    .option(
      "--subject <id>",
      'only this counter, as in the column COUNTS: a key, an organization, or ["organization","user"]',
    )
    .option("--at <time>", "a time in the period (default: now)", isoTime)
    .action(status);
  withBudget(noun.command("create <id>"))
    .description("create a budget, which counts from the next request on")
    .action(write(({ budgets }, budget) => budgets.create(budget)));
  withBudget(noun.command("update <id>"))
    .description(
      "replace a budget's limit, scope, mode and warnings, and keep its settled and held amounts",
    )
    .action(write(({ budgets }, budget) => budgets.update(budget)));
  noun.command("remove <id>").description("remove a budget and keep its history").action(remove);
  withAmount(noun.command("raise <id>"), "raise")
    .description("raise the limit of a budget for a time")
    .requiredOption("--until <time>", "when the raise ends", isoTime)
    .action(raise);
  noun.command("raises <id>").description("list the current raises of a budget").action(raises);
  noun
    .command("cancel-raise <id> <raise>")
    .description("end a raise of a budget at once")
    .action(cancelRaise);
  noun
    .command("reconcile")
    .description("compare every counter with its ledger, and fail if one differs")
    .action(reconcile);
}

async function get(id: string, _options: unknown, command: Command): Promise<void> {
  await withRecords(command, async ({ budgets }, { json }) =>
    printBudget(json, await budgets.get({ id })),
  );
}

async function status(id: string, _options: unknown, command: Command): Promise<void> {
  const options = optionsOf<ListOptions & Omit<BudgetStatusQuery, "id">>(command);
  const { subject, at } = options;
  const query = {
    id,
    ...(subject === undefined ? {} : { subject }),
    ...(at === undefined ? {} : { at }),
  };
  await withRecords(command, async ({ budgets }, { json }) =>
    printPage(json, await budgets.status(query, pageOf(options)), statusColumns),
  );
}

function write(
  act: (
    administration: Administration,
    budget: BudgetConfiguration & WithActor,
  ) => Promise<BudgetRecord>,
) {
  return async (id: string, _options: unknown, command: Command): Promise<void> => {
    const budget = budgetOf(id, optionsOf<BudgetOptions>(command));
    await withAdministration(command, async (administration, { json, acting }) =>
      printBudget(json, await act(administration, { ...budget, ...acting })),
    );
  };
}

async function remove(id: string, _options: unknown, command: Command): Promise<void> {
  await withAdministration(command, async ({ budgets }, { json, acting }) => {
    await budgets.remove({ id, ...acting });
    print(json, { id, removed: true }, `removed ${id}`);
  });
}

async function raise(id: string, _options: unknown, command: Command): Promise<void> {
  const options = optionsOf<AmountOptions & { readonly until: string }>(command);
  const raising = { id, by: amountOf(options), until: options.until };
  await withAdministration(command, async ({ budgets }, { json, acting }) => {
    const record = await budgets.raise({ ...raising, ...acting });
    printRecord(json, record, { ...record, amount: amount(record.amount, record.unit) });
  });
}

async function raises(id: string, _options: unknown, command: Command): Promise<void> {
  await withRecords(command, async ({ budgets }, { json }) => {
    const data = await budgets.raises({ id });
    printPage(json, { data, nextCursor: null }, raiseColumns);
  });
}

async function cancelRaise(
  id: string,
  raiseId: string,
  _options: unknown,
  command: Command,
): Promise<void> {
  await withAdministration(command, async ({ budgets }, { json, acting }) => {
    await budgets.cancelRaise({ id, raiseId, ...acting });
    print(json, { id, raiseId, cancelled: true }, `cancelled ${raiseId}`);
  });
}

async function reconcile(_options: unknown, command: Command): Promise<void> {
  await withRecords(command, async ({ budgets }, { json }) => {
    const { counters, drift } = await budgets.reconcile();
    const text = drift.length === 0 ? [] : [formatTable(drift, driftColumns)];
    print(json, { counters, drift }, [...text, `counters: ${counters}`].join("\n\n"));
    if (drift.length > 0) throw new CommandError("some counters differ from their ledger");
  });
}

function printBudget(json: boolean | undefined, budget: BudgetRecord): void {
  printRecord(json, budget, { ...budget, limit: amount(budget.limit, budget.unit) });
}
