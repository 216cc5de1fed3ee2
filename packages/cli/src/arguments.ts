import { parseDuration } from "@tollgate/core";
import { parseUsd } from "@tollgate/core/provider";
import { administrationSchemas, tryRead } from "@tollgate/core/schemas";
import { type Command, InvalidArgumentError } from "commander";
import { CommandError } from "./failure.ts";
import { printable } from "./table.ts";

/** Parses a whole number in a range. */
export function wholeNumber(min: number, max = Number.MAX_SAFE_INTEGER) {
  return (text: string): number => {
    const value = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN;
    if (value >= min && value <= max) return value;
    const range = max === Number.MAX_SAFE_INTEGER ? `${min} or more` : `${min} to ${max}`;
    throw new InvalidArgumentError(`It must be a whole number, ${range}.`);
  };
}

/** Checks an ISO 8601 time and returns it unchanged. */
export function isoTime(text: string): string {
  if (tryRead(administrationSchemas["changes.list"].shape.from, text).value !== null) return text;
  throw new InvalidArgumentError("It must be a time such as 2026-01-31 or 2026-01-31T12:00:00Z.");
}

/** Adds the options of a range of times. */
export function timeRange(
  command: Command,
  from = "only from this time on",
  to = "only before this time",
): Command {
  return command
    .option("--from <time>", from, isoTime)
    .option("--to <time>", to, isoTime)
    .hook("preAction", (one) => {
      const range = one.opts<{ readonly from?: string; readonly to?: string }>();
      if (Date.parse(range.from ?? "") > Date.parse(range.to ?? ""))
        throw new CommandError("--from must not be after --to", 2);
    });
}

/** Checks a duration and returns it unchanged. */
export function duration(text: string): string {
  if (parseDuration(text) !== null) return text;
  throw new InvalidArgumentError("It must be a duration such as 90s, 15m, 24h or 30d.");
}

/** Parses an amount in US dollars, as nanodollars. */
export function nanoUsd(text: string): number {
  const amount = parseUsd(text);
  if (amount !== null) return amount;
  throw new InvalidArgumentError(
    "It must be an amount such as 0.0125, with at most nine decimals.",
  );
}

/** Checks an amount in US dollars and returns it unchanged. */
export function dollars(text: string): string {
  nanoUsd(text);
  return text;
}

/** Parses one of several words. */
export function oneOf<Word extends string>(...words: readonly Word[]) {
  return (text: string): Word => {
    const word = words.find((one) => one === text);
    if (word !== undefined) return word;
    throw new InvalidArgumentError(`It must be one of: ${words.join(", ")}.`);
  };
}

/** As `oneOf`, for an option that can be repeated. */
export function someOf<Word extends string>(...words: readonly Word[]) {
  const parse = oneOf(...words);
  return (text: string, before: readonly Word[] | undefined): readonly Word[] => [
    ...(before ?? []),
    parse(text),
  ];
}

/** Collects the values of an option that can be repeated. */
export function repeated(text: string, before: readonly string[] | undefined): readonly string[] {
  return [...(before ?? []), text];
}

/** Collects names for models from `<name>=<id>`. */
export function alias(
  text: string,
  before: Readonly<Record<string, string>> | undefined,
): Readonly<Record<string, string>> {
  const [, name = "", id = ""] = /^([^=]+)=(.+)$/.exec(text) ?? [];
  if (id === "")
    throw new InvalidArgumentError(
      "It must be a name and a model id, such as gpt-5=openai/openai/gpt-5.",
    );
  return withPair(name, id, before);
}

/** Adds a pair to those of an option that can be repeated. Each name has one value. */
export function withPair(
  name: string,
  value: string,
  before: Readonly<Record<string, string>> = {},
): Readonly<Record<string, string>> {
  if (Object.hasOwn(before, name))
    throw new InvalidArgumentError(`The name ${printable(name)} is given twice.`);
  return { ...before, [name]: value };
}

/** The options of every list. */
export interface ListOptions {
  readonly organization?: string;
  readonly limit?: number;
  readonly cursor?: string;
}

/** Adds a noun's `list`, which is also the default command of the noun. */
export function listCommand(noun: Command, description: string): Command {
  return pageOptions(
    platformListCommand(noun, description).option(
      "--organization <id>",
      "only this organization (default: all)",
    ),
  );
}

/** As `listCommand`, for records that belong to no organization. The caller adds the options of a page. */
export function platformListCommand(noun: Command, description: string): Command {
  return noun
    .command("list", { isDefault: true })
    .description(description)
    .allowExcessArguments()
    .hook("preAction", rejectWords);
}

/** Adds the options of a page. */
export function pageOptions(command: Command): Command {
  return command
    .option("--limit <count>", "maximum number of rows", wholeNumber(1, 1_000))
    .option("--cursor <cursor>", "start after this cursor of the previous page");
}

/** Commander takes a mistyped command as an argument of `list`, which has no arguments. */
function rejectWords(list: Command): void {
  const [word] = list.args;
  if (word === undefined) return;
  throw new CommandError(`unknown command '${list.parent?.name()} ${printable(word)}'`, 2);
}

/** Adds a noun's command on one record by its id. */
export function recordCommand(noun: Command, name: string, description: string): Command {
  return noun
    .command(`${name} <id>`)
    .description(description)
    .option("--organization <id>", "only in this organization (default: any)");
}

/** The options of a command on one record. */
export interface RecordOptions {
  readonly organization?: string;
}

/** Returns the paging options that are set. */
export function pageOf({ limit, cursor }: ListOptions): {
  readonly limit?: number;
  readonly cursor?: string;
} {
  return { ...(limit === undefined ? {} : { limit }), ...(cursor === undefined ? {} : { cursor }) };
}
