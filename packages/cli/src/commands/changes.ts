import type { ChangeFilter, ChangeKind, ChangeRecord } from "@tollgate/core";
import type { Command } from "commander";
import { listAction } from "../actions.ts";
import { isoTime, listCommand, oneOf } from "../arguments.ts";
import type { Column } from "../table.ts";

const columns: readonly Column<ChangeRecord>[] = [
  { heading: "at", of: (change) => change.at },
  { heading: "kind", of: (change) => change.kind },
  { heading: "actor", of: (change) => change.actor },
  { heading: "organization", of: (change) => change.organizationId },
  { heading: "subject", of: (change) => change.subject },
  { heading: "facts", of: (change) => JSON.stringify(change.facts) },
];

const kinds = oneOf<ChangeKind>(
  "key.created",
  "key.updated",
  "key.rotated",
  "key.revoked",
  "connection.set",
  "connection.removed",
  "connection.resealed",
  "budget.created",
  "budget.updated",
  "budget.removed",
  "budget.raised",
  "budget.raise_cancelled",
  "correction",
  "policy.changed",
);

export function defineChanges(program: Command): void {
  const noun = program.command("changes").description("who administered what");
  listCommand(noun, "administrative changes, newest first")
    .option("--kind <kind>", "only these, such as key.revoked", kinds)
    .option("--from <time>", "made at or after this time", isoTime)
    .option("--to <time>", "made before this time", isoTime)
    .action(
      listAction<Omit<ChangeFilter, "organizationId">, ChangeRecord>(
        (gateway, filter, page) => gateway.changes.list(filter, page),
        columns,
      ),
    );
}
