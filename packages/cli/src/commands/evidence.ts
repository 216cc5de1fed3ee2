import type { LogRecord } from "@tollgate/core";
import type { Command } from "commander";
import { repeated } from "../arguments.ts";
import { CommandError } from "../failure.ts";
import { globalsOf, optionsOf } from "../globals.ts";
import { print } from "../print.ts";
import { readBounded } from "../secrets.ts";
import { type Column, formatTable } from "../table.ts";
import { organizationScope, requireStore, withGateway } from "../with-administration.ts";

const columns: readonly Column<LogRecord>[] = [
  { heading: "ORGANIZATION", of: ({ organizationId }) => organizationId },
  { heading: "LEAVES", of: ({ size }) => size, right: true },
  { heading: "CHECKPOINTS", of: ({ checkpoints }) => checkpoints, right: true },
  { heading: "ANCHORS", of: ({ anchors }) => anchors, right: true },
  { heading: "PROBLEM", of: ({ problem }) => problem && described(problem) },
];

function described({ index, checkpoint, message }: NonNullable<LogRecord["problem"]>): string {
  return `from leaf ${index} on, checkpoint ${checkpoint}: ${message}`;
}

export function defineEvidence(program: Command): void {
  const noun = program.command("evidence").description("logs of sealed evidence");
  noun
    .command("verify")
    .description("verify the logs against their signatures, and fail if anything was changed")
    .option("--organization <id>", "only the log of this organization (default: all)")
    .option(
      "--key <key>",
      "a public key whose signatures count (repeatable; default: the configured one)",
      repeated,
    )
    .option(
      "--anchor <file>",
      "a file of notes that were kept outside the database (repeatable)",
      repeated,
    )
    .action(verify);
  noun
    .command("anchor")
    .description("print the last signed checkpoint of a log, to keep it elsewhere")
    .option("--organization <id>", "the organization (default: the log of no organization)")
    .action(anchor);
  noun
    .command("key")
    .description("print the public key that verifies the signatures")
    .action(showKey);
}

interface VerifyOptions {
  readonly organization?: string;
  readonly key?: readonly string[];
  readonly anchor?: readonly string[];
}

async function verify(_options: unknown, command: Command): Promise<void> {
  const { organization, key, anchor: files = [] } = optionsOf<VerifyOptions>(command);
  const anchors = (await Promise.all(files.map(notesIn))).flat();
  await withGateway(command, async (gateway) => {
    if (key === undefined && gateway.evidence.verificationKey === null)
      throw new CommandError("verifying needs a public key: pass --key, or configure `evidence`");
    await requireStore(gateway);
    const logs = await gateway.evidence.verify({
      organizationId: organizationScope(organization),
      ...(key === undefined ? {} : { keys: key }),
      anchors,
    });
    const isEmpty = logs.every(({ checkpoints, problem }) => checkpoints === 0 && problem === null);
    const text = isEmpty ? "nothing is sealed yet" : formatTable(logs, columns);
    print(globalsOf(command).json, { data: logs }, text);
    if (logs.some(({ problem }) => problem !== null))
      throw new CommandError("some logs have a problem");
  });
}

async function anchor(_options: unknown, command: Command): Promise<void> {
  const { organization } = optionsOf<{ readonly organization?: string }>(command);
  await withGateway(command, async (gateway) => {
    await requireStore(gateway);
    const { evidence } = gateway;
    const checkpoint = await evidence.latest({ organizationId: organization ?? null });
    if (checkpoint?.note == null) {
      const why = evidence.verificationKey === null ? ": the configuration has no `evidence`" : "";
      throw new CommandError(`the log has no signed checkpoint${why}`);
    }
    print(globalsOf(command).json, checkpoint, checkpoint.note.replace(/\n$/, ""));
  });
}

async function showKey(_options: unknown, command: Command): Promise<void> {
  await withGateway(command, async ({ evidence: { verificationKey } }) => {
    if (verificationKey === null) throw new CommandError("the configuration has no `evidence`");
    print(globalsOf(command).json, { verificationKey }, verificationKey);
  });
}

const maxAnchorBytes = 1_048_576;

/** The notes in a file, each of which ends with its signatures. */
async function notesIn(file: string): Promise<readonly string[]> {
  const bytes = await readBounded(file, maxAnchorBytes).catch((thrown: unknown) => {
    const code = thrown instanceof Error && "code" in thrown ? String(thrown.code) : "unknown";
    throw new CommandError(`the anchor ${file} can't be read (${code})`);
  });
  if (bytes.length > maxAnchorBytes) throw new CommandError(`the anchor ${file} is too long`);
  const parts = bytes.toString().split(/(?<=^\u2014 .*\n)(?!\u2014 )/mu);
  const notes = parts.map((part) => part.trimStart()).filter((part) => part !== "");
  if (notes.length === 0) throw new CommandError(`the anchor ${file} has no note`);
  return notes;
}
