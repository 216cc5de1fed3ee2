import type { StepRecord, SummaryDimension } from "@tollgate/core";
import type { Command } from "commander";
import { filterAction, listAction, recordAction } from "../actions.ts";
import { listCommand, recordCommand } from "../arguments.ts";
import { exportAction, exportCommand } from "../export-command.ts";
import { outcomeOption, type StepOptions, stepOptions, withClasses } from "../step-options.ts";
import { printSummary, summarizeCommand } from "../summarize-command.ts";
import type { Column } from "../table.ts";
import { usd } from "../usd.ts";
import { defineCorrection } from "./correct-step.ts";
import { defineRepricing } from "./reprice-steps.ts";

const columns: readonly Column<StepRecord>[] = [
  { heading: "id", of: (step) => step.id },
  { heading: "at", of: (step) => step.openedAt },
  { heading: "key", of: (step) => step.keyLabel },
  { heading: "model", of: (step) => step.model },
  { heading: "outcome", of: (step) => step.outcome },
  { heading: "reason", of: (step) => step.reason },
  { heading: "tokens", of: (step) => step.totalTokens, right: true },
  { heading: "cost", of: (step) => usd(step.costNanoUsd), right: true },
  { heading: "step", of: (step) => step.stepNumber, right: true },
  { heading: "session", of: (step) => step.sessionId },
];

export function defineSteps(program: Command): void {
  const noun = program.command("steps").description("every call, whatever its end");
  const filtered = (command: Command): Command => outcomeOption(stepOptions(command));
  filtered(listCommand(noun, "Steps, newest first")).action(
    listAction<StepOptions, StepRecord>(
      (gateway, options, page) => gateway.steps.list(withClasses(options), page),
      columns,
    ),
  );
  filtered(summarizeCommand(noun)).action(
    filterAction<StepOptions & Summing>(async (gateway, { by, ...options }, { json }) =>
      printSummary(json, await gateway.steps.summarize(withClasses(options), by)),
    ),
  );
  filtered(exportCommand(noun, "Steps as a file")).action(
    exportAction<StepOptions>((gateway, options, format) =>
      gateway.steps.export(withClasses(options), { format }),
    ),
  );
  defineRepricing(noun, filtered);
  recordCommand(noun, "get", "one Step with its attempts").action(
    recordAction((gateway, { organizationId, id }) => gateway.steps.get({ organizationId, id })),
  );
  defineCorrection(noun);
}

interface Summing {
  readonly by: readonly SummaryDimension[];
}
