import { readFile } from "node:fs/promises";
import {
  GatewayError,
  type PriceTable,
  type RepricedAttempt,
  type RepriceOptions,
} from "@tollgate/core";
import type { Command } from "commander";
import { filterAction } from "../actions.ts";
import { CommandError, messageOf } from "../failure.ts";
import { print } from "../print.ts";
import { type StepOptions, withClasses } from "../step-options.ts";
import { type Column, formatTable } from "../table.ts";
import { usd } from "../usd.ts";

/** The attempts on one model, at their cost and at other prices. */
interface RepricedModel {
  readonly model: string;
  attempts: number;
  different: number;
  corrected: number;
  differenceNanoUsd: number;
}

interface Options extends StepOptions {
  readonly prices: string;
  readonly apply?: true;
}

const columns: readonly Column<RepricedModel>[] = [
  { heading: "model", of: (row) => row.model },
  { heading: "attempts", of: (row) => row.attempts, right: true },
  { heading: "different", of: (row) => row.different, right: true },
  { heading: "corrected", of: (row) => row.corrected, right: true },
  { heading: "difference", of: (row) => usd(row.differenceNanoUsd), right: true },
];

export function defineRepricing(noun: Command, filtered: (command: Command) => Command): void {
  const command = noun
    .command("reprice")
    .description("show the cost of Steps at other prices; changes nothing without --apply")
    .option("--organization <id>", "only this organization (default: all)")
    .option("--prices <file>", "a JSON file with prices, or catalog", "catalog")
    .option("--apply", "correct each attempt whose cost differs");
  filtered(command).action(
    filterAction<Options>(
      async ({ steps }, { prices, apply = false, ...options }, { json, isRemote, acting }) => {
        // A catalog is code, which can't be sent.
        if (isRemote && prices === "catalog")
          throw new CommandError(
            "pass a file of prices with --prices: the catalog is for --config",
          );
        const repricing = { prices: await readPrices(prices), apply, ...acting };
        const byModel = new Map<string, RepricedModel>();
        const rows = steps.reprice(withClasses(options), repricing, { limit: 1_000 });
        for await (const row of rows) add(byModel, row);
        const data = [...byModel.values()];
        print(json, { data }, data.length === 0 ? "no records" : formatTable(data, columns));
      },
    ),
  );
}

function add(byModel: Map<string, RepricedModel>, row: RepricedAttempt): void {
  const { model, costNanoUsd, repricedNanoUsd, differenceNanoUsd, corrected } = row;
  const nothing = { model, attempts: 0, different: 0, corrected: 0, differenceNanoUsd: 0 };
  const sums = byModel.get(model) ?? nothing;
  byModel.set(model, sums);
  sums.attempts++;
  if (repricedNanoUsd !== null && repricedNanoUsd !== costNanoUsd) sums.different++;
  if (corrected) sums.corrected++;
  sums.differenceNanoUsd += differenceNanoUsd;
  if (!Number.isSafeInteger(sums.differenceNanoUsd))
    throw new GatewayError("invalid_argument", "The difference is too large to be exact.");
}

async function readPrices(source: string): Promise<RepriceOptions["prices"]> {
  if (source === "catalog") return (await import("@tollgate/prices")).catalogPrices();
  try {
    const table: unknown = JSON.parse(await readFile(source, "utf8"));
    if (isTable(table)) return table;
  } catch (cause) {
    throw new CommandError(
      cause instanceof SyntaxError
        ? `${source} is not valid JSON`
        : `can't read ${source}: ${messageOf(cause)}`,
    );
  }
  throw new CommandError(`${source} must contain prices by full model id`);
}

function isTable(table: unknown): table is PriceTable {
  return (
    typeof table === "object" &&
    table !== null &&
    !Array.isArray(table) &&
    Object.values(table).every((prices) => typeof prices === "object" && prices !== null)
  );
}
