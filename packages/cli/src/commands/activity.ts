import type { ActivityRecord } from "@tollgate/core";
import type { Command } from "commander";
import { listAction } from "../actions.ts";
import { isoTime, listCommand } from "../arguments.ts";
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
    .action(
      listAction<Filter, ActivityRecord>(
        (gateway, filter, page) => gateway.activity.list(filter, page),
        columns,
      ),
    );
}
