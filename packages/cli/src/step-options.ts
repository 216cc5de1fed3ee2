import type { StepFilter } from "@tollgate/core";
import { connectionOwnerships, endpointNames, stepOutcomes } from "@tollgate/core/store";
import { type Command, InvalidArgumentError } from "commander";
import { repeated, someOf, timeRange, withPair } from "./arguments.ts";

/** The filter options of commands on Steps. */
export interface StepOptions
  extends ClassOptions,
    Omit<StepFilter, "organizationId" | "dataClass"> {}

/** A range of data classes. */
export interface ClassOptions {
  readonly classFrom?: string;
  readonly classUpTo?: string;
}

const ownerships = someOf(...connectionOwnerships);
const endpoints = someOf(...endpointNames);
const outcomes = someOf(...stepOutcomes, "open");

/** Adds the filters of Steps and activity. */
export function stepOptions(command: Command): Command {
  return ownerOptions(command)
    .option("--session <id>", "only this Session (repeatable)", repeated)
    .option("--turn <id>", "only this Turn (repeatable)", repeated)
    .option("--decision <id>", "only this policy decision (repeatable)", repeated)
    .option("--endpoint <endpoint>", "only this endpoint (repeatable)", endpoints)
    .option("--vendor <name>", "only models of this vendor (repeatable)", repeated)
    .option("--host <name>", "only this upstream host (repeatable)", repeated)
    .option("--metadata <name=value>", "only with this metadata pair (repeatable)", pairs);
}

/** Parses a name and a value, split at the first `=`. A Step must have every pair. */
function pairs(
  text: string,
  before: Readonly<Record<string, string>> | undefined,
): Readonly<Record<string, string>> {
  const at = text.indexOf("=");
  if (at < 0) throw new InvalidArgumentError("It must be a pair such as ticket=T-17.");
  return withPair(text.slice(0, at), text.slice(at + 1), before);
}

/** Adds the filter that only Steps have. */
export function outcomeOption(command: Command): Command {
  return command.option(
    "--outcome <outcome>",
    "only this outcome: completed, failed, cancelled, interrupted or open (repeatable)",
    outcomes,
  );
}

/** Adds the common filters of Steps, activity and decisions. */
export function ownerOptions(command: Command): Command {
  const owned = command
    .option("--user <id>", "only this user (repeatable)", repeated)
    .option("--key <id>", "only this key (repeatable)", repeated)
    .option("--source <source>", "only this source, such as api (repeatable)", repeated)
    .option("--gateway <name>", "only this gateway (repeatable)", repeated)
    .option("--model <pattern>", "only matching models, such as */openai/* (repeatable)", repeated)
    .option(
      "--connection <owner>",
      "only calls on the platform's or the customer's account",
      ownerships,
    )
    .option("--class-from <class>", "only this data class or a stricter one")
    .option("--class-up-to <class>", "only this data class or a less strict one");
  return timeRange(owned);
}

/** Converts the options to the gateway's filter, with the data classes as a range. */
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
