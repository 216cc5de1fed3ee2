import type { StepRecord } from "@tollgate/core";
import type { Command } from "commander";
import { listAction, recordAction } from "../actions.ts";
import { isoTime, listCommand, oneOf, recordCommand } from "../arguments.ts";
import type { Column } from "../table.ts";
import { usd } from "../usd.ts";
import { defineCorrection } from "./correct-step.ts";

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

const outcomes = oneOf("completed", "failed", "cancelled", "interrupted", "open");

interface Filter {
  readonly user?: string;
  readonly key?: string;
  readonly session?: string;
  readonly turn?: string;
  readonly decision?: string;
  readonly gateway?: string;
  readonly model?: string;
  readonly outcome?: ReturnType<typeof outcomes>;
  readonly from?: string;
  readonly to?: string;
}

export function defineSteps(program: Command): void {
  const noun = program.command("steps").description("every call, whatever its end");
  listCommand(noun, "Steps, newest first")
    .option("--user <id>", "only this user's")
    .option("--key <id>", "only through this key")
    .option("--session <id>", "only in this Session")
    .option("--turn <id>", "only in this Turn")
    .option("--decision <id>", "only under this policy decision")
    .option("--gateway <name>", "only through this gateway")
    .option("--model <pattern>", "only models that match, such as */openai/*")
    .option("--outcome <outcome>", "only those that ended so, or open ones", outcomes)
    .option("--from <time>", "begun at or after this time", isoTime)
    .option("--to <time>", "begun before this time", isoTime)
    .action(
      listAction<Filter, StepRecord>(
        (gateway, filter, page) => gateway.steps.list(filter, page),
        columns,
      ),
    );
  recordCommand(noun, "get", "one Step with its attempts").action(
    recordAction((gateway, { organizationId, id }) => gateway.steps.get({ organizationId, id })),
  );
  defineCorrection(noun);
}
