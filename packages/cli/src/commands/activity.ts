import type { ActivityRecord } from "@tollgate/core";
import type { Command } from "commander";
import { isoTime, type ListOptions, listCommand, pageOf } from "../arguments.ts";
import { optionsOf } from "../globals.ts";
import { tenantOf, withGateway } from "../open-gateway.ts";
import { printPage } from "../print.ts";
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

interface Filter {
  readonly user?: string;
  readonly key?: string;
  readonly session?: string;
  readonly source?: string;
  readonly gateway?: string;
  readonly model?: string;
  readonly from?: string;
  readonly to?: string;
}

export function defineActivity(program: Command): void {
  const noun = program.command("activity").description("completed calls and what they cost");
  listCommand(noun, "completed calls, newest first")
    .option("--user <id>", "only this user's")
    .option("--key <id>", "only through this key")
    .option("--session <id>", "only in this Session")
    .option("--source <source>", "only from this source, such as api")
    .option("--gateway <name>", "only through this gateway")
    .option("--model <pattern>", "only models that match, such as */openai/*")
    .option("--from <time>", "begun at or after this time", isoTime)
    .option("--to <time>", "begun before this time", isoTime)
    .action(list);
}

async function list(_options: unknown, command: Command): Promise<void> {
  const options = optionsOf<ListOptions & Filter>(command);
  const {
    organization,
    limit: _limit,
    cursor: _cursor,
    config,
    json,
    actor: _actor,
    ...filter
  } = options;
  const organizationId = tenantOf(organization);
  await withGateway(config, async (gateway) =>
    printPage(
      json,
      await gateway.activity.list({ organizationId, ...filter }, pageOf(options)),
      columns,
    ),
  );
}
