import { parseDuration } from "@tollgate/core";
import { type Command, InvalidArgumentError } from "commander";
import { CommandError } from "./failure.ts";
import { printable } from "./table.ts";

/** A whole number from `least` up. */
export function wholeNumber(min: number, max = Number.MAX_SAFE_INTEGER) {
  return (text: string): number => {
    const value = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN;
    if (value >= min && value <= max) return value;
    const range = max === Number.MAX_SAFE_INTEGER ? `${min} or more` : `${min} to ${max}`;
    throw new InvalidArgumentError(`It must be a whole number, ${range}.`);
  };
}

/** A point in time in ISO 8601, kept as it is written. */
export function isoTime(text: string): string {
  const isTime = /^\d{4}-\d{2}-\d{2}(?:T.*(?:Z|[+-]\d{2}:\d{2}))?$/.test(text);
  if (isTime && !Number.isNaN(Date.parse(text))) return text;
  throw new InvalidArgumentError("It must be a time such as 2026-01-31 or 2026-01-31T12:00:00Z.");
}

/** A length of time, kept as it is written. */
export function duration(text: string): string {
  if (parseDuration(text) !== null) return text;
  throw new InvalidArgumentError("It must be a duration such as 90s, 15m, 24h or 30d.");
}

/** One of several words. */
export function oneOf<Word extends string>(...words: readonly Word[]) {
  return (text: string): Word => {
    const word = words.find((one) => one === text);
    if (word !== undefined) return word;
    throw new InvalidArgumentError(`It must be one of: ${words.join(", ")}.`);
  };
}

/** An option that may be given several times. */
export function repeated(text: string, before: readonly string[] | undefined): readonly string[] {
  return [...(before ?? []), text];
}

/** The options of every list. */
export interface ListOptions {
  readonly organization?: string;
  readonly limit?: number;
  readonly cursor?: string;
}

/** Adds a noun's `list`, which is also what the noun alone does. */
export function listCommand(noun: Command, description: string): Command {
  return noun
    .command("list", { isDefault: true })
    .description(description)
    .allowExcessArguments()
    .hook("preAction", rejectWords)
    .option("--organization <id>", "only this organization (default: every one)")
    .option("--limit <count>", "rows of a page", wholeNumber(1, 1_000))
    .option("--cursor <cursor>", "where the last page ended");
}

/** A mistyped command is taken for an argument of the list, which has none. */
function rejectWords(list: Command): void {
  const [word] = list.args;
  if (word === undefined) return;
  throw new CommandError(`unknown command '${list.parent?.name()} ${printable(word)}'`, 2);
}

/** Adds a noun's command on one record, which is named by its id. */
export function recordCommand(noun: Command, name: string, description: string): Command {
  return noun
    .command(`${name} <id>`)
    .description(description)
    .option("--organization <id>", "only if it belongs to this organization (default: to any)");
}

/** The options of a command on one record. */
export interface RecordOptions {
  readonly organization?: string;
}

/** Which page of a list; what was not asked for is absent. */
export function pageOf({ limit, cursor }: ListOptions): {
  readonly limit?: number;
  readonly cursor?: string;
} {
  return { ...(limit === undefined ? {} : { limit }), ...(cursor === undefined ? {} : { cursor }) };
}
