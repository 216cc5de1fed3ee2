import type { DecisionRecord } from "@tollgate/core";
import type { Command } from "commander";
import { listAction, recordAction } from "../actions.ts";
import { isoTime, listCommand, oneOf, recordCommand } from "../arguments.ts";
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

interface Filter {
  readonly user?: string;
  readonly key?: string;
  readonly effect?: ReturnType<typeof effects>;
  readonly from?: string;
  readonly to?: string;
}

export function defineDecisions(program: Command): void {
  const noun = program.command("decisions").description("what the policy decided");
  listCommand(noun, "policy decisions, newest first")
    .option("--user <id>", "only this user's")
    .option("--key <id>", "only through this key")
    .option("--effect <effect>", "only these: permit or deny", effects)
    .option("--from <time>", "made at or after this time", isoTime)
    .option("--to <time>", "made before this time", isoTime)
    .action(
      listAction<Filter, DecisionRecord>(
        (gateway, filter, page) => gateway.decisions.list(filter, page),
        columns,
      ),
    );
  recordCommand(noun, "get", "one decision with the facts it was made on").action(
    recordAction((gateway, { organizationId, id }) =>
      gateway.decisions.get({ organizationId, id }),
    ),
  );
}
