import type { ModelRecord, PolicyRecord, PolicyRuleRecord } from "@tollgate/core";
import type { Command } from "commander";
import { type ListOptions, pageOf, pageOptions } from "../arguments.ts";
import { CommandError } from "../failure.ts";
import { optionsOf } from "../globals.ts";
import { print, printPage, printRecord } from "../print.ts";
import { type Column, formatRecord, formatTable } from "../table.ts";
import { usd } from "../usd.ts";
import { withAdministration } from "../with-administration.ts";

const modelColumns: readonly Column<ModelRecord>[] = [
  { heading: "id", of: ({ id }) => id },
  { heading: "connection", of: ({ connection }) => connection },
  { heading: "input", of: ({ price }) => usd(price?.rates["input"] ?? null), right: true },
  { heading: "output", of: ({ price }) => usd(price?.rates["output"] ?? null), right: true },
  { heading: "price from", of: ({ price }) => price && (price.version ?? price.source) },
];

const ruleColumns: readonly Column<PolicyRuleRecord>[] = [
  { heading: "effect", of: ({ effect }) => effect },
  { heading: "id", of: ({ id }) => id },
  { heading: "match", of: ({ match }) => JSON.stringify(match) },
  { heading: "options", of: ({ options }) => JSON.stringify(options) },
];

/** Defines the commands that show how a gateway runs and how it is configured. */
export function defineGateway(program: Command): void {
  program.command("status").description("show how busy the gateway at --url is").action(showStatus);
  pageOptions(program.command("models"))
    .description("list models, with their current prices in dollars per million tokens")
    .action(listModels);
  program.command("policy").description("show the version and the rules").action(showPolicy);
}

async function listModels(_options: unknown, command: Command): Promise<void> {
  const page = pageOf(optionsOf<ListOptions>(command));
  await withAdministration(command, async (administration, { json }) =>
    printPage(json, await administration.models(page), modelColumns),
  );
}

/** A process that only runs this command has nothing to tell. */
async function showStatus(_options: unknown, command: Command): Promise<void> {
  await withAdministration(command, async (administration, { json, isRemote }) => {
    if (!isRemote) throw new CommandError("'status' asks a running gateway: pass its --url", 2);
    printRecord(json, await administration.status());
  });
}

async function showPolicy(_options: unknown, command: Command): Promise<void> {
  await withAdministration(command, async (administration, { json }) => {
    const policy = await administration.policy();
    const { rules, ...others } = policy;
    const text = rules === null ? withoutRules(policy) : formatTable(rules, ruleColumns);
    print(json, policy, `${formatRecord(others)}\n\n${text}`);
  });
}

/** Without a policy, the version is `none`. */
function withoutRules({ version }: Pick<PolicyRecord, "version">): string {
  return version === "none" ? "no policy: everything is permitted" : "the policy is a function";
}
