import type {
  Administration,
  RateLimitConfiguration,
  RateLimitRecord,
  RateLimitStatus,
  WithActor,
} from "@tollgate/core";
import { ratePeriods, rateSubjects } from "@tollgate/core/store";
import type { Command } from "commander";
import { listAction } from "../actions.ts";
import {
  type ListOptions,
  listCommand,
  oneOf,
  pageOf,
  pageOptions,
  wholeNumber,
} from "../arguments.ts";
import { type ScopeOptions, scopeOf, withScope } from "../budget-options.ts";
import { CommandError } from "../failure.ts";
import { optionsOf } from "../globals.ts";
import { print, printPage, printRecord } from "../print.ts";
import type { Column } from "../table.ts";
import { amount } from "../usd.ts";
import { withAdministration, withRecords } from "../with-administration.ts";

const periods = oneOf(...ratePeriods);
const subjects = oneOf(...rateSubjects);

interface RateLimitOptions extends ScopeOptions {
  readonly each?: ReturnType<typeof subjects>;
  readonly requests?: number;
  readonly tokens?: number;
  readonly concurrentSteps?: number;
  readonly per?: ReturnType<typeof periods>;
  readonly burst?: number;
}

const columns: readonly Column<RateLimitRecord>[] = [
  { heading: "id", of: (rateLimit) => rateLimit.id },
  { heading: "limit", of: (rateLimit) => rateText(rateLimit), right: true },
  { heading: "burst", of: (rateLimit) => rateLimit.burst || null, right: true },
  { heading: "scope", of: (rateLimit) => JSON.stringify(rateLimit.scope) },
  { heading: "origin", of: (rateLimit) => rateLimit.origin },
];

const statusColumns: readonly Column<RateLimitStatus>[] = [
  { heading: "counts", of: (status) => status.subject || "all" },
  { heading: "limit", of: (status) => amount(status.limit, status.unit), right: true },
  { heading: "burst", of: (status) => status.burst || null, right: true },
  { heading: "left", of: (status) => status.remaining, right: true },
  { heading: "reset", of: (status) => `${status.resetMs} ms`, right: true },
];

export function defineRateLimits(program: Command): void {
  const noun = program
    .command("rate-limits")
    .description("limits on requests, tokens and concurrent Steps");
  listCommand(
    noun,
    "list rate limits by id: all, or those that can count an organization's calls",
  ).action(
    listAction<object, RateLimitRecord>(
      ({ rateLimits }, scope, page) => rateLimits.list(scope, page),
      columns,
    ),
  );
  noun.command("get <id>").description("show one rate limit").action(get);
  pageOptions(noun.command("status <id>"))
    .description("show the amounts that a rate limit has left")
    .option(
      "--subject <id>",
      'only this counter, as in the column COUNTS: a key, an organization, a gateway, a model, or ["organization","user"]',
    )
    .action(status);
  withRateLimit(noun.command("create <id>"))
    .description("create a rate limit, which applies from the next request on")
    .action(write(({ rateLimits }, rateLimit) => rateLimits.create(rateLimit)));
  withRateLimit(noun.command("update <id>"))
    .description("replace a rate limit and keep the amount already used")
    .action(write(({ rateLimits }, rateLimit) => rateLimits.update(rateLimit)));
  noun.command("remove <id>").description("remove a rate limit").action(remove);
}

function withRateLimit(command: Command): Command {
  const limited = command
    .option("--requests <count>", "requests per period", wholeNumber(0))
    .option("--tokens <count>", "tokens per period", wholeNumber(0))
    .option("--concurrent-steps <count>", "Steps in flight at once", wholeNumber(0))
    .option("--per <period>", "second, minute, hour or day", periods)
    .option(
      "--burst <count>",
      "requests or tokens allowed at once (default: a tenth of the limit)",
      wholeNumber(1),
    );
  return withScope(limited).option(
    "--each <subject>",
    "use a separate counter for each key, user, organization, gateway or model",
    subjects,
  );
}

function rateLimitOf(id: string, options: RateLimitOptions): RateLimitConfiguration {
  const { requests, tokens, concurrentSteps, per, burst } = options;
  const limits = [
    requests === undefined ? [] : { requests },
    tokens === undefined ? [] : { tokens },
    concurrentSteps === undefined ? [] : { concurrentSteps },
  ].flat();
  const [limit, ...others] = limits;
  if (limit === undefined || others.length > 0)
    throw new CommandError("pass exactly one of --requests, --tokens and --concurrent-steps", 2);
  const isRate = concurrentSteps === undefined;
  if (isRate && per === undefined)
    throw new CommandError("--requests and --tokens require --per", 2);
  if (!isRate && (per !== undefined || burst !== undefined))
    throw new CommandError("--per and --burst are for --requests and --tokens", 2);
  return {
    id,
    scope: scopeOf(options),
    limit,
    ...(per === undefined ? {} : { per }),
    ...(burst === undefined ? {} : { burst }),
  };
}

async function get(id: string, _options: unknown, command: Command): Promise<void> {
  await withRecords(command, async ({ rateLimits }, { json }) =>
    printRateLimit(json, await rateLimits.get({ id })),
  );
}

async function status(id: string, _options: unknown, command: Command): Promise<void> {
  const options = optionsOf<ListOptions & { readonly subject?: string }>(command);
  const { subject } = options;
  const query = { id, ...(subject === undefined ? {} : { subject }) };
  await withRecords(command, async ({ rateLimits }, { json }) =>
    printPage(json, await rateLimits.status(query, pageOf(options)), statusColumns),
  );
}

function write(
  act: (
    administration: Administration,
    rateLimit: RateLimitConfiguration & WithActor,
  ) => Promise<RateLimitRecord>,
) {
  return async (id: string, _options: unknown, command: Command): Promise<void> => {
    const rateLimit = rateLimitOf(id, optionsOf<RateLimitOptions>(command));
    await withAdministration(command, async (administration, { json, acting }) =>
      printRateLimit(json, await act(administration, { ...rateLimit, ...acting })),
    );
  };
}

async function remove(id: string, _options: unknown, command: Command): Promise<void> {
  await withAdministration(command, async ({ rateLimits }, { json, acting }) => {
    await rateLimits.remove({ id, ...acting });
    print(json, { id, removed: true }, `removed ${id}`);
  });
}

function printRateLimit(json: boolean | undefined, rateLimit: RateLimitRecord): void {
  printRecord(json, rateLimit, { ...rateLimit, limit: rateText(rateLimit) });
}

function rateText({ limit, unit, per }: RateLimitRecord): string {
  return `${amount(limit, unit)} ${per === null ? "in flight" : `per ${per}`}`;
}
