import type { GatewayOptions } from "@tollgate/core";
import { warningsOf } from "@tollgate/core/check";
import type { Problem } from "@tollgate/core/schemas";
import { ConfigurationError } from "./configuration/configuration-error.ts";
import { CommandError, messageOf } from "./failure.ts";
import type { Globals } from "./globals.ts";
import { type OpenedGateway, openGateway } from "./open-gateway.ts";
import { print } from "./print.ts";
import { type Column, formatTable, printable } from "./table.ts";

/** Checks in addition to that of the configuration itself. */
export interface CheckedOptions extends Globals {
  readonly strict?: boolean;
  readonly store?: boolean;
}

interface GatewaySummary {
  readonly gateway: string;
  readonly connection: string;
  readonly models: number;
  readonly open: boolean;
}

const columns: readonly Column<GatewaySummary>[] = [
  { heading: "gateway", of: (row) => row.gateway },
  { heading: "connection", of: (row) => row.connection },
  { heading: "models", of: (row) => row.models, right: true },
  { heading: "others", of: (row) => (row.open ? "yes" : "no") },
];

/**
 * Loads a configuration, prints its contents and warnings, and closes it again.
 * @throws CommandError with exit code 2 if the configuration or its store can't be used, and 1 for warnings under `--strict`
 */
export async function runCheck({ config, json, strict, store }: CheckedOptions): Promise<void> {
  const opened = await openOrPrint(config, json);
  try {
    if (store) await checkStore(opened);
    const warnings = opened.options === null ? [] : warningsOf(opened.options);
    printContents(json, opened, warnings);
    if (strict && warnings.length > 0)
      throw new CommandError(`the configuration has ${counted(warnings.length, "warning")}`);
  } finally {
    await opened.gateway.close();
  }
}

async function openOrPrint(config: string | undefined, json = false): Promise<OpenedGateway> {
  try {
    return await openGateway(config);
  } catch (thrown) {
    const isKnown = thrown instanceof ConfigurationError;
    const problems = isKnown ? thrown.problems : [{ path: "", message: messageOf(thrown) }];
    const file = isKnown ? thrown.file : (config ?? null);
    const lines = problems.map((problem) => `error: ${lineOf(problem)}`);
    const text = [...(file === null ? [] : [file, ""]), ...lines].join("\n");
    print(json, { file, errors: problems, warnings: [] }, text);
    throw new CommandError(`the configuration has ${counted(problems.length, "error")}`, 2);
  }
}

async function checkStore({ gateway }: OpenedGateway): Promise<void> {
  try {
    await gateway.checkStore();
  } catch (thrown) {
    throw new CommandError(`the store can't be used: ${messageOf(thrown)}`, 2);
  }
}

function printContents(
  json: boolean | undefined,
  { configuration, options }: OpenedGateway,
  warnings: readonly Problem[],
): void {
  const contents = options === null ? null : contentsOf(options);
  const document = { file: configuration, ...contents, errors: [], warnings };
  const origin = configuration ?? "no configuration file: using the defaults and the environment";
  const details =
    contents === null
      ? ["The file exports a gateway: export its options instead to check them."]
      : [
          formatTable(contents.gateways, columns),
          [
            `policy       ${policyLine(contents)}`,
            `budgets      ${contents.budgets.map(printable).join(", ") || "none"}`,
            `rate limits  ${contents.rateLimits.map(printable).join(", ") || "none"}`,
          ].join("\n"),
        ];
  const warned = warnings.map((warning) => `warning: ${lineOf(warning)}`);
  print(json, document, [origin, ...details, warned.join("\n")].filter(Boolean).join("\n\n"));
}

function contentsOf({ providers, policy, budgets = [], rateLimits = [] }: GatewayOptions) {
  return {
    gateways: Object.entries(providers).map(
      ([gateway, { connection, models, open, virtual }]): GatewaySummary => ({
        gateway,
        connection,
        models: Object.keys(virtual ?? models).length,
        open,
      }),
    ),
    policy:
      policy === undefined
        ? null
        : {
            version: policy.version,
            rules: "rules" in policy && Array.isArray(policy.rules) ? policy.rules.length : null,
          },
    budgets: budgets.map(({ id }) => id),
    rateLimits: rateLimits.map(({ id }) => id),
  };
}

function policyLine({ policy }: ReturnType<typeof contentsOf>): string {
  if (policy === null) return "none: everything is permitted";
  const rules = policy.rules === null ? "a function" : counted(policy.rules, "rule");
  return `${printable(policy.version)}, ${rules}`;
}

function lineOf({ message }: Problem): string {
  return message
    .split("\n")
    .map((line) => printable(line))
    .join(" ");
}

function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}
