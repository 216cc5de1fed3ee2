import { type FileHandle, open } from "node:fs/promises";
import type { KeyRecord } from "@tollgate/core";
import type { Command } from "commander";
import type { Change } from "../apply/plan.ts";
import { CommandError, messageOf } from "../failure.ts";
import { optionsOf } from "../globals.ts";
import { print } from "../print.ts";
import { type Column, formatTable, printable } from "../table.ts";
import { type Invocation, withAdministration, withRecords } from "../with-administration.ts";

interface ApplyOptions {
  readonly file: string;
  readonly dryRun?: true;
  readonly yes?: true;
  readonly prune?: true;
  readonly replaceCredentials?: true;
  readonly secretsOut?: string;
}

const columns: readonly Column<Change>[] = [
  { heading: "action", of: (change) => change.action },
  { heading: "kind", of: (change) => change.kind },
  { heading: "organization", of: (change) => change.organizationId },
  { heading: "name", of: (change) => change.name },
  { heading: "changes", of: (change) => change.differences.join(", ") },
];

export function defineApply(program: Command): void {
  program
    .command("apply")
    .description("set up organizations' keys, limits and connections from a file")
    .requiredOption("-f, --file <file>", "the JSON or YAML file of organizations")
    .option("--dry-run", "print the plan, and change nothing")
    .option("--yes", "make the changes; without it, a plan with changes fails")
    .option("--prune", "also remove what apply made that is no longer in the file")
    .option("--replace-credentials", "also set the credentials of connections that exist")
    .option("--secrets-out <file>", "the new file for the secrets of new keys, as JSON Lines")
    .action(apply);
}

async function apply(_options: unknown, command: Command): Promise<void> {
  const options = optionsOf<ApplyOptions>(command);
  const { prune = false, replaceCredentials = false, dryRun = false } = options;
  if (dryRun && options.yes) throw new CommandError("pass either --dry-run or --yes", 2);
  const [{ readDesiredState }, { planOf }] = await Promise.all([
    import("../apply/desired-state.ts"),
    import("../apply/plan.ts"),
  ]);
  const organizations = await readDesiredState(options.file);
  const run = options.yes ? withAdministration : withRecords;
  await run(command, async (administration, invocation) => {
    const plan: Change[] = [];
    for (const organization of organizations)
      plan.push(...(await planOf(administration, organization, { prune, replaceCredentials })));
    const changes = plan.filter(({ action }) => action !== "unchanged");
    const isApplied = options.yes === true && changes.length > 0;
    if (isApplied) await makeAll(changes, options.secretsOut, invocation);
    printPlan(plan, changes, isApplied, invocation);
    if (!dryRun && !isApplied && changes.length > 0)
      throw new CommandError("nothing was changed: pass --yes to make these changes");
  });
}

function printPlan(
  plan: readonly Change[],
  changes: readonly Change[],
  isApplied: boolean,
  { json }: Invocation,
): void {
  const count = (wanted: Change["action"]): number =>
    plan.filter(({ action }) => action === wanted).length;
  const counts = { create: count("create"), update: count("update"), remove: count("remove") };
  const unchanged = count("unchanged");
  const sums = [...Object.entries(counts), ["unchanged", unchanged]]
    .map(([name, sum]) => `${sum} ${name}`)
    .join(", ");
  const table = changes.length === 0 ? [] : [formatTable(changes, columns)];
  const verb = isApplied ? "applied" : "plan";
  const listed = changes.map(({ make: _make, ...change }) => change);
  const document = { applied: isApplied, ...counts, unchanged, changes: listed };
  print(json, document, [...table, `${verb}: ${sums}`].join("\n\n"));
}

/** Makes the changes one by one. After a failure, another run makes the rest. */
async function makeAll(
  changes: readonly Change[],
  secretsOut: string | undefined,
  { acting }: Invocation,
): Promise<void> {
  const makesKeys = changes.some(({ action, kind }) => action === "create" && kind === "key");
  if (makesKeys && secretsOut === undefined)
    throw new CommandError(
      "this creates keys: name a new file for their secrets with --secrets-out",
      2,
    );
  const secrets = makesKeys && secretsOut !== undefined ? await openSecrets(secretsOut) : null;
  let made = 0;
  try {
    for (const change of changes) {
      await change
        .make(acting, (key, secret) => keepSecret(secrets, key, secret))
        .catch((thrown) => {
          const done = `${made} of ${changes.length} changes were made`;
          throw new CommandError(
            `can't ${change.action} ${change.kind} ${printable(change.name)}: ${messageOf(thrown)} (${done}; apply again to make the rest)`,
          );
        });
      made++;
    }
  } finally {
    await secrets?.close();
  }
}

/** Only its owner may read the file. An existing file isn't overwritten: it may have the only copy of a secret. */
async function openSecrets(file: string): Promise<FileHandle> {
  return open(file, "wx", 0o600).catch((thrown: unknown) => {
    const code = thrown instanceof Error && "code" in thrown ? thrown.code : "unknown";
    throw new CommandError(
      code === "EEXIST" ? `${file} already exists` : `can't write ${file} (${code})`,
    );
  });
}

/** Written before the next change, so that a later failure loses no secret. */
async function keepSecret(
  secrets: FileHandle | null,
  { organizationId, userId, label, id }: KeyRecord,
  secret: string,
): Promise<void> {
  await secrets?.appendFile(`${JSON.stringify({ organizationId, userId, label, id, secret })}\n`);
  await secrets?.sync();
}
