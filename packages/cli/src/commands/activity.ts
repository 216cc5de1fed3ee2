import type { ActivityRecord, SummaryDimension } from "@tollgate/core";
import type { Command } from "commander";
import { filterAction, listAction } from "../actions.ts";
import { listCommand } from "../arguments.ts";
import { exportAction, exportCommand } from "../export-command.ts";
import { type StepOptions, stepOptions, withClasses } from "../step-options.ts";
import { printSummary, summarizeCommand } from "../summarize-command.ts";
import type { Column } from "../table.ts";
import { usd } from "../usd.ts";

const columns: readonly Column<ActivityRecord>[] = [
  { heading: "at", of: (row) => row.openedAt },
  { heading: "key", of: (row) => row.keyLabel },
  { heading: "model", of: (row) => row.model },
  { heading: "in", of: (row) => row.promptTokens, right: true },
  { heading: "out", of: (row) => row.completionTokens, right: true },
  { heading: "cost", of: (row) => usd(row.costNanoUsd), right: true },
  { heading: "ms", of: (row) => row.durationMs, right: true },
  { heading: "tools", of: (row) => row.toolCalls, right: true },
  { heading: "source", of: (row) => row.source },
  { heading: "session", of: (row) => row.sessionId },
];

export function defineActivity(program: Command): void {
  const noun = program.command("activity").description("completed calls and what they cost");
  stepOptions(listCommand(noun, "completed calls, newest first")).action(
    listAction<ActivityOptions, ActivityRecord>(
      (gateway, options, page) => gateway.activity.list(withClasses(options), page),
      columns,
    ),
  );
  stepOptions(summarizeCommand(noun)).action(
    filterAction<ActivityOptions & SummaryOptions>(async (gateway, { by, ...options }, { json }) =>
      printSummary(json, await gateway.activity.summarize(withClasses(options), by)),
    ),
  );
  stepOptions(exportCommand(noun, "completed calls as a file")).action(
    exportAction<ActivityOptions>((gateway, options, format) =>
      gateway.activity.export(withClasses(options), { format }),
    ),
  );
}

type ActivityOptions = Omit<StepOptions, "outcome">;

interface SummaryOptions {
  readonly by: readonly Exclude<SummaryDimension, "outcome">[];
}
