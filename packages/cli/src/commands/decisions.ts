import type { DecisionFilter, DecisionRecord } from "@tollgate/core";
import type { Command } from "commander";
import { listAction, recordAction } from "../actions.ts";
import { listCommand, oneOf, recordCommand, repeated } from "../arguments.ts";
import { exportAction, exportCommand } from "../export-command.ts";
import { type ClassOptions, ownerOptions, withClasses } from "../step-options.ts";
import type { Column } from "../table.ts";

const columns: readonly Column<DecisionRecord>[] = [
  { heading: "id", of: (decision) => decision.id },
  { heading: "at", of: (decision) => decision.at },
  { heading: "effect", of: (decision) => decision.effect },
  { heading: "rules", of: (decision) => decision.rules.join(" ") },
  { heading: "reason", of: (decision) => decision.reason ?? null },
  { heading: "organization", of: ({ facts }) => facts.organization },
  { heading: "user", of: ({ facts }) => facts.user },
  { heading: "class", of: ({ facts }) => facts.dataClass },
  {
    heading: "model",
    of: ({ facts }) => `${facts.gateway}/${facts.vendor}/${facts.model}`,
  },
];

const effects = oneOf("permit", "deny");

interface Options extends ClassOptions, Omit<DecisionFilter, "organizationId" | "dataClass"> {}

export function defineDecisions(program: Command): void {
  const noun = program.command("decisions").description("what the policy decided");
  filtered(listCommand(noun, "policy decisions, newest first")).action(
    listAction<Options, DecisionRecord>(
      (gateway, options, page) => gateway.decisions.list(withClasses(options), page),
      columns,
    ),
  );
  filtered(exportCommand(noun, "policy decisions as a file")).action(
    exportAction<Options>((gateway, options, format) =>
      gateway.decisions.export(withClasses(options), { format }),
    ),
  );
  recordCommand(noun, "get", "one decision with the facts it was made on").action(
    recordAction((gateway, { organizationId, id }) =>
      gateway.decisions.get({ organizationId, id }),
    ),
  );
}

function filtered(command: Command): Command {
  return ownerOptions(command)
    .option("--effect <effect>", "only these: permit or deny", effects)
    .option("--rule <id>", "only those that this rule determined", repeated);
}
