import type { SummaryDimension, UsageSummary } from "@tollgate/core";
import { type Command, InvalidArgumentError } from "commander";
import { oneOf } from "./arguments.ts";
import { print } from "./print.ts";
import { type Column, formatTable } from "./table.ts";
import { usd } from "./usd.ts";

/** The dimensions of Steps, in the order of their columns. */
const dimensions: readonly SummaryDimension[] = [
  "organization",
  "user",
  "key",
  "session",
  "source",
  "dataClass",
  "day",
  "hour",
  "outcome",
  "gateway",
  "vendor",
  "model",
  "connection",
  "host",
];

/** The dimensions of activity, which has only one outcome. */
export const activityDimensions = dimensions.filter((dimension) => dimension !== "outcome");

/** Adds a noun's `summarize`. The caller adds the filters. */
export function summarizeCommand(noun: Command, allowed = dimensions): Command {
  return byDimensions(noun.command("summarize").description("sum up tokens and costs"), allowed);
}

function byDimensions(command: Command, allowed: readonly SummaryDimension[]): Command {
  return command
    .option("--organization <id>", "only this organization (default: all)")
    .option(
      "--by <dimensions>",
      `group by one or more of ${allowed.join(", ")}, separated by commas`,
      dimensionsOf(allowed),
      [],
    );
}

/** Adds a noun's `series`. The caller adds the filters. */
export function seriesCommand(noun: Command): Command {
  const series = noun.command("series").description("sum up tokens and costs by hour or day");
  return byDimensions(series, dimensions).option(
    "--bucket <length>",
    "the length of each bucket, in UTC: hour or day",
    oneOf("hour", "day"),
    "day",
  );
}

/** Parses dimensions separated by commas. The option can be repeated. */
function dimensionsOf(allowed: readonly SummaryDimension[]) {
  return (text: string, before: readonly SummaryDimension[]): readonly SummaryDimension[] => {
    if (text === "") throw new InvalidArgumentError("It must name at least one dimension.");
    return [...before, ...text.split(",").map(oneOf(...allowed))];
  };
}

/** Prints the rows of a summary or a series. */
export function printSummary(json: boolean | undefined, data: readonly UsageSummary[]): void {
  print(json, { data }, data.length === 0 ? "no records" : formatTable(data, columnsOf(data)));
}

function columnsOf([first]: readonly UsageSummary[]): readonly Column<UsageSummary>[] {
  const asked = dimensions.filter((dimension) => first !== undefined && dimension in first);
  return [
    ...asked.map((heading) => ({ heading, of: (row: UsageSummary) => row[heading] ?? null })),
    ...(asked.includes("key")
      ? [{ heading: "label", of: (row: UsageSummary) => row.keyLabel ?? null }]
      : []),
    { heading: "steps", of: (row) => row.steps, right: true },
    { heading: "in", of: (row) => row.promptTokens, right: true },
    { heading: "out", of: (row) => row.completionTokens, right: true },
    { heading: "cost", of: (row) => usd(row.costNanoUsd), right: true },
    { heading: "unpriced", of: (row) => row.unknownCosts, right: true },
    { heading: "estimated", of: (row) => row.estimated, right: true },
  ];
}
