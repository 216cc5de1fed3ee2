import type {
  Administration,
  SessionRecord,
  TranscriptEntry,
  TranscriptReference,
} from "@tollgate/core";
import { maxTranscriptMessages } from "@tollgate/core/administration";
import type { Message } from "@tollgate/core/provider";
import type { Command } from "commander";
import { contentAction, listAction, recordAction } from "../actions.ts";
import { listCommand, recordCommand } from "../arguments.ts";
import { print, printPage } from "../print.ts";
import type { Column } from "../table.ts";
import { printable } from "../table.ts";

const columns: readonly Column<SessionRecord>[] = [
  { heading: "id", of: (session) => session.id },
  { heading: "organization", of: (session) => session.organizationId },
  { heading: "user", of: (session) => session.userId },
  { heading: "source", of: (session) => session.source },
  { heading: "messages", of: (session) => session.length, right: true },
  { heading: "created", of: (session) => session.createdAt },
  { heading: "updated", of: (session) => session.updatedAt },
  { heading: "branched from", of: (session) => session.branchedFromSessionId },
];

interface Filter {
  readonly user?: string;
  readonly key?: string;
  readonly source?: string;
}

export function defineSessions(program: Command): void {
  const noun = program.command("sessions").description("conversations and their transcripts");
  listCommand(noun, "list Sessions, most recently updated first")
    .option("--user <id>", "only this user")
    .option("--key <id>", "only this key")
    .option("--source <source>", "only this source, such as api")
    .action(
      listAction<Filter, SessionRecord>(
        ({ sessions }, filter, page) => sessions.list(filter, page),
        columns,
      ),
    );
  recordCommand(noun, "get", "show one Session").action(
    recordAction(({ sessions }, reference) => sessions.get(reference)),
  );
  recordCommand(noun, "lineage", "show a Session and those that it branched from").action(
    contentAction(
      async ({ sessions }, { organizationId, id }) => {
        const data: SessionRecord[] = [];
        for await (const session of sessions.lineage({ organizationId, id })) data.push(session);
        return data;
      },
      (json, data) => printPage(json, { data, nextCursor: null }, columns),
    ),
  );
  recordCommand(noun, "transcript", "show the messages of a Session").action(
    contentAction(wholeTranscript, printTranscript),
  );
}

/** Reads on as long as a reading may have left out messages. */
async function wholeTranscript(
  { sessions }: Administration,
  reference: TranscriptReference,
): Promise<readonly TranscriptEntry[]> {
  const entries: TranscriptEntry[] = [];
  for (let [from, read] = [0, 1]; read > 0; from += read) {
    const next = await sessions.transcript({ ...reference, from });
    read = next.reduce((sum, { count }) => sum + count, 0);
    entries.push(...next);
    if (read < maxTranscriptMessages) break;
  }
  return entries;
}

function printTranscript(json: boolean | undefined, data: readonly TranscriptEntry[]): void {
  print(json, { data, nextCursor: null }, data.map(entryText).join("\n"));
}

function entryText({ messages, kind, count }: TranscriptEntry): string {
  if (messages === null) return `${kind}: ${count} messages without stored content`;
  return messages.map(messageText).join("\n");
}

/** Formats a message as one line. */
export function messageText(message: Message): string {
  const calls = message.role === "assistant" ? (message.tool_calls ?? []) : [];
  const called = calls.map(({ function: { name, arguments: given } }) => `${name}(${given})`);
  const said = [message.content ?? [], called].flat().filter((part) => part !== "");
  return `${message.role.padEnd(9)}  ${said.map(printable).join(" ")}`;
}
