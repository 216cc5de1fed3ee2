import { endpointNames, type StepFilter } from "@tollgate/core";
import { type Command, InvalidArgumentError } from "commander";
import { isoTime, oneOf, repeated } from "./arguments.ts";

/** The options of commands on Steps, as the command line takes them. */
export interface StepOptions
  extends ClassOptions,
    Omit<StepFilter, "organizationId" | "dataClass"> {}

/** The two ends of a range of data classes. */
export interface ClassOptions {
  readonly classFrom?: string;
  readonly classUpTo?: string;
}

const ownerships = oneOf("platform", "customer");
const endpoints = oneOf(...endpointNames);
const outcomes = oneOf("completed", "failed", "cancelled", "interrupted", "open");

/** Adds what Steps and activity are filtered by. */
export function stepOptions(command: Command): Command {
  return ownerOptions(command)
    .option("--session <id>", "only in this Session", repeated)
    .option("--turn <id>", "only in this Turn", repeated)
    .option("--decision <id>", "only under this policy decision", repeated)
    .option("--endpoint <endpoint>", "only by this endpoint", endpoints)
    .option("--vendor <name>", "only models of this vendor", repeated)
    .option("--host <name>", "only of this upstream host", repeated)
    .option("--metadata <name=value>", "only with this metadata pair", pairs);
}

/** A name and a value, split at the first `=`. A Step must have every pair that is given. */
function pairs(
  text: string,
  before: Readonly<Record<string, string>> = {},
): Readonly<Record<string, string>> {
  const at = text.indexOf("=");
  if (at < 0) throw new InvalidArgumentError("It must be a pair such as ticket=T-17.");
  return { ...before, [text.slice(0, at)]: text.slice(at + 1) };
}

/** Adds what Steps alone are filtered by as well. */
export function outcomeOption(command: Command): Command {
  return command.option("--outcome <outcome>", "only those that ended so, or open ones", outcomes);
}

/** Adds what Steps, activity and decisions are filtered by alike. */
export function ownerOptions(command: Command): Command {
  return command
    .option("--user <id>", "only this user's", repeated)
    .option("--key <id>", "only through this key", repeated)
    .option("--source <source>", "only from this source, such as api", repeated)
    .option("--gateway <name>", "only through this gateway", repeated)
    .option("--model <pattern>", "only models that match, such as */openai/*", repeated)
    .option("--connection <owner>", "only over accounts of: platform or customer", ownerships)
    .option("--class-from <class>", "only of this data class or a stricter one")
    .option("--class-up-to <class>", "only of this data class or a less strict one")
    .option("--from <time>", "begun at or after this time", isoTime)
    .option("--to <time>", "begun before this time", isoTime);
}

/** A filter as the gateway takes it: the data classes as a range. */
export function withClasses<Options extends ClassOptions>({
  classFrom,
  classUpTo,
  ...filter
}: Options): Omit<Options, keyof ClassOptions> & Pick<StepFilter, "dataClass"> {
  if (classFrom === undefined && classUpTo === undefined) return filter;
  return {
    ...filter,
    dataClass: {
      ...(classFrom === undefined ? {} : { from: classFrom }),
      ...(classUpTo === undefined ? {} : { upTo: classUpTo }),
    },
  };
}
