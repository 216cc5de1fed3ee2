import { randomUUID } from "node:crypto";
import { lstatSync } from "node:fs";
import { open, rename, rm } from "node:fs/promises";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { Administration, ExportFormat, OrganizationScope } from "@tollgate/core";
import type { Command } from "commander";
import { filterAction } from "./actions.ts";
import { oneOf } from "./arguments.ts";
import { CommandError, messageOf } from "./failure.ts";

interface ExportCommandOptions {
  readonly format: ExportFormat;
  readonly out: string;
}

/** Adds a noun's `export`. The caller adds the filters. */
export function exportCommand(noun: Command, description: string): Command {
  return noun
    .command("export")
    .description(description)
    .option("--organization <id>", "only this organization (default: all)")
    .option("--format <format>", "csv or jsonl", oneOf<ExportFormat>("csv", "jsonl"), "csv")
    .option("--out <file>", "the new file, or - for standard output", "-");
}

/** Creates the action of an `export` command. It streams, so files can have any size. */
export function exportAction<Filter extends object>(
  read: (
    administration: Administration,
    filter: Filter & OrganizationScope,
    format: ExportFormat,
  ) => ReadableStream<Uint8Array>,
): (options: unknown, command: Command) => Promise<void> {
  return filterAction<Filter & ExportCommandOptions>(async (administration, options) => {
    const { format, out, ...filter } = options;
    const own = filter as object as Filter & OrganizationScope;
    await writeOut(Readable.fromWeb(read(administration, own, format)), out);
  });
}

/** Writes to a new file, or to standard output for `-`. */
export async function writeOut(file: Readable, out: string): Promise<void> {
  await (out === "-" ? toOutput(file) : toFile(file, out));
}

/** A reader that stops early, such as `head`, is not a failure. */
async function toOutput(file: Readable): Promise<void> {
  try {
    await pipeline(file, process.stdout, { end: false });
  } catch (error) {
    if (!isCode(error, "EPIPE")) throw error;
  }
}

/** Writes a new file, which gets its name once it is complete: nobody takes what a killed command leaves for a whole file. */
async function toFile(file: Readable, path: string): Promise<void> {
  const part = `${path}.${randomUUID()}.part`;
  try {
    if (lstatSync(path, { throwIfNoEntry: false })) throw new CommandError(exists(path));
    const whole = await open(part, "wx");
    await pipeline(file, whole.createWriteStream());
    // Renaming would replace a file that another command has made in the meantime.
    await (await open(path, "wx")).close();
    await rename(part, path);
  } catch (error) {
    await rm(part, { force: true });
    if (error instanceof CommandError) throw error;
    throw new CommandError(
      isCode(error, "EEXIST") ? exists(path) : `can't write ${path}: ${messageOf(error)}`,
    );
  }
}

function exists(path: string): string {
  return `${path} already exists`;
}

function isCode(error: unknown, code: string): boolean {
  return error instanceof Error && "code" in error && error.code === code;
}
