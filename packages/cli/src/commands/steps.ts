import type {
  ActivityRecord,
  MissingContent,
  StepContent,
  StepContentPart,
  StepRecord,
  SummaryDimension,
} from "@tollgate/core";
import type { Command } from "commander";
import { contentAction, filterAction, listAction, recordAction } from "../actions.ts";
import { listCommand, recordCommand } from "../arguments.ts";
import { exportAction, exportCommand } from "../export-command.ts";
import { print } from "../print.ts";
import { outcomeOption, type StepOptions, stepOptions, withClasses } from "../step-options.ts";
import {
  activityDimensions,
  printSummary,
  seriesCommand,
  summarizeCommand,
} from "../summarize-command.ts";
import { type Column, escaped, formatRecord } from "../table.ts";
import { usd } from "../usd.ts";
import { defineCorrection } from "./correct-step.ts";
import { defineRepricing } from "./reprice-steps.ts";
import { messageText } from "./sessions.ts";

const columns: readonly Column<StepRecord>[] = [
  { heading: "id", of: (step) => step.id },
  { heading: "at", of: (step) => step.openedAt },
  { heading: "key", of: (step) => step.keyLabel },
  { heading: "model", of: (step) => step.model },
  { heading: "outcome", of: (step) => step.outcome },
  { heading: "reason", of: (step) => step.reason },
  { heading: "error", of: (step) => truncate(step.attempts.at(-1)?.error?.message ?? null) },
  { heading: "tokens", of: (step) => step.totalTokens, right: true },
  { heading: "cost", of: (step) => usd(step.costNanoUsd), right: true },
  { heading: "step", of: (step) => step.stepNumber, right: true },
  { heading: "session", of: (step) => step.sessionId },
];

/** Truncates a text to a column. `steps get` shows all of it. */
function truncate(text: string | null): string | null {
  return text !== null && text.length > 60 ? `${text.slice(0, 59).toWellFormed()}…` : text;
}

export function defineSteps(program: Command): void {
  const noun = program.command("steps").description("every call, whatever its outcome");
  const filtered = (command: Command): Command => outcomeOption(stepOptions(command));
  filtered(listCommand(noun, "list Steps, newest first")).action(
    listAction<StepOptions, StepRecord>(
      ({ steps }, options, page) => steps.list(withClasses(options), page),
      columns,
    ),
  );
  filtered(summarizeCommand(noun)).action(
    filterAction<StepOptions & SummaryOptions>(async ({ steps }, { by, ...options }, { json }) =>
      printSummary(json, await steps.summarize(withClasses(options), by)),
    ),
  );
  filtered(seriesCommand(noun)).action(
    filterAction<StepOptions & SeriesOptions>(
      async (gateway, { by, bucket, ...options }, { json }) =>
        printSummary(json, await gateway.steps.series(withClasses(options), { bucket, by })),
    ),
  );
  filtered(exportCommand(noun, "export Steps as a file")).action(
    exportAction<StepOptions>(({ steps }, options, format) =>
      steps.export(withClasses(options), { format }),
    ),
  );
  defineRepricing(noun, filtered);
  recordCommand(noun, "get", "show one Step with its attempts").action(
    recordAction(({ steps }, reference) => steps.get(reference)),
  );
  recordCommand(
    noun,
    "content",
    "show the instructions, input, reasoning and answer of a Step",
  ).action(
    contentAction(
      ({ steps }, reference) => steps.content(reference),
      (json, content) => print(json, content, contentText(content)),
    ),
  );
  defineCorrection(noun);
}

const whyMissing = {
  none: "none",
  open: "the Step is still open",
  digest: "not kept: the policy keeps only digests",
  erased: "erased by retention",
} as const satisfies Record<MissingContent, string>;

function contentText({ missing, ...content }: StepContent): string {
  const part = (name: StepContentPart, lines: readonly string[] | undefined): string => {
    const why = `(${whyMissing[missing[name] ?? "none"]})`;
    return [`${name}:`, ...(lines ?? [why]).map((line) => `  ${line}`)].join("\n");
  };
  return [
    formatRecord({ id: content.id, session: content.sessionId, outcome: content.outcome }),
    part("instructions", content.instructions?.split("\n").map(escaped)),
    part("input", content.input?.map(messageText)),
    part("reasoning", content.reasoning?.split("\n").map(escaped)),
    part("answer", content.answer?.map(messageText)),
  ].join("\n\n");
}

interface SeriesOptions extends SummaryOptions {
  readonly bucket: "hour" | "day";
}

interface SummaryOptions {
  readonly by: readonly SummaryDimension[];
}

const activityColumns: readonly Column<ActivityRecord>[] = [
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
  const noun = program.command("activity").description("completed calls and their costs");
  stepOptions(listCommand(noun, "list completed calls, newest first")).action(
    listAction<ActivityOptions, ActivityRecord>(
      ({ activity }, options, page) => activity.list(withClasses(options), page),
      activityColumns,
    ),
  );
  stepOptions(summarizeCommand(noun, activityDimensions)).action(
    filterAction<ActivityOptions & ActivitySummaryOptions>(
      async ({ activity }, { by, ...options }, { json }) =>
        printSummary(json, await activity.summarize(withClasses(options), by)),
    ),
  );
  stepOptions(exportCommand(noun, "export completed calls as a file")).action(
    exportAction<ActivityOptions>(({ activity }, options, format) =>
      activity.export(withClasses(options), { format }),
    ),
  );
}

type ActivityOptions = Omit<StepOptions, "outcome">;

interface ActivitySummaryOptions {
  readonly by: readonly Exclude<SummaryDimension, "outcome">[];
}
