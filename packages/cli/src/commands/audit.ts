import type { ChangeFilter, ChangeRecord, DecisionFilter, DecisionRecord } from "@tollgate/core";
import { changeKinds } from "@tollgate/core/administration";
import type { Command } from "commander";
import { listAction, recordAction } from "../actions.ts";
import { listCommand, oneOf, recordCommand, repeated, someOf, timeRange } from "../arguments.ts";
import { exportAction, exportCommand } from "../export-command.ts";
import { CommandError } from "../failure.ts";
import { type ClassOptions, ownerOptions, withClasses } from "../step-options.ts";
import type { Column } from "../table.ts";
import { amount } from "../usd.ts";

const columns: readonly Column<DecisionRecord>[] = [
  { heading: "id", of: (decision) => decision.id },
  { heading: "at", of: (decision) => decision.at },
  { heading: "effect", of: (decision) => decision.effect },
  { heading: "rules", of: (decision) => decision.rules.join(" ") },
  { heading: "reason", of: (decision) => decision.reason ?? null },
  { heading: "refused by", of: ({ refusal }) => refusal && described(refusal) },
  { heading: "organization", of: ({ facts }) => facts.organization },
  { heading: "user", of: ({ facts }) => facts.user },
  { heading: "class", of: ({ facts }) => facts.dataClass },
  {
    heading: "model",
    of: ({ facts }) => `${facts.gateway}/${facts.vendor}/${facts.model}`,
  },
];

const effects = oneOf("permit", "deny");
const refusals = someOf("any", "none", "budget", "rate_limit", "price", "connection");

/** Describes in one cell why a permitted request was rejected. */
function described(refusal: NonNullable<DecisionRecord["refusal"]>): string {
  switch (refusal.by) {
    case "budget": {
      const { budgetId, subject, unit, needed, left } = refusal;
      const counter = subject === "" ? budgetId : `${budgetId} of ${subject}`;
      return `budget ${counter}: needed ${amount(needed, unit)}, left ${amount(left, unit)}`;
    }
    case "rate_limit": {
      const { rateLimitId, subject, unit, needed, left } = refusal;
      const counter = subject === "" ? rateLimitId : `${rateLimitId} of ${subject}`;
      return `rate limit ${counter}: needed ${amount(needed, unit)}, left ${left}`;
    }
    case "price":
      return `price of ${refusal.param}`;
    case "connection":
      return "connection";
  }
}

interface Options
  extends ClassOptions,
    Omit<DecisionFilter, "organizationId" | "dataClass" | "refused" | "refusal"> {
  readonly refused?: ReturnType<typeof refusals>;
}

/** Converts `--refused` to the gateway's filter. */
function refusedOf(refused: Options["refused"]): Pick<DecisionFilter, "refused" | "refusal"> {
  if (refused === undefined) return {};
  const refusal = refused.filter((by) => by !== "any" && by !== "none");
  if (refusal.length === refused.length) return { refusal };
  if (refused.length > 1) throw new CommandError("pass any or none as the only --refused", 2);
  return { refused: refused[0] === "any" };
}

export function defineDecisions(program: Command): void {
  const noun = program.command("decisions").description("policy decisions");
  filtered(listCommand(noun, "list policy decisions, newest first")).action(
    listAction<Options, DecisionRecord>(
      ({ decisions }, { refused, ...options }, page) =>
        decisions.list({ ...withClasses(options), ...refusedOf(refused) }, page),
      columns,
    ),
  );
  filtered(exportCommand(noun, "export policy decisions as a file")).action(
    exportAction<Options>(({ decisions }, { refused, ...options }, format) =>
      decisions.export({ ...withClasses(options), ...refusedOf(refused) }, { format }),
    ),
  );
  recordCommand(noun, "get", "show one decision with its facts").action(
    recordAction(({ decisions }, reference) => decisions.get(reference)),
  );
}

function filtered(command: Command): Command {
  return ownerOptions(command)
    .option("--effect <effect>", "only this effect: permit or deny", effects)
    .option(
      "--refused <by>",
      "only rejected by: budget, rate_limit, price or connection; any or none (repeatable)",
      refusals,
    )
    .option("--rule <id>", "only determined by this rule (repeatable)", repeated);
}

const changeColumns: readonly Column<ChangeRecord>[] = [
  { heading: "at", of: (change) => change.at },
  { heading: "kind", of: (change) => change.kind },
  { heading: "actor", of: (change) => change.actor },
  { heading: "organization", of: (change) => change.organizationId },
  { heading: "subject", of: (change) => change.subject },
  { heading: "facts", of: (change) => JSON.stringify(change.facts) },
];

const kinds = someOf(...changeKinds);

export function defineChanges(program: Command): void {
  const noun = program.command("changes").description("administrative changes and their actors");
  const list = listCommand(noun, "list administrative changes, newest first");
  timeRange(
    list.option("--kind <kind>", "only this kind, such as key.revoked (repeatable)", kinds),
  ).action(
    listAction<Omit<ChangeFilter, "organizationId">, ChangeRecord>(
      ({ changes }, filter, page) => changes.list(filter, page),
      changeColumns,
    ),
  );
}
