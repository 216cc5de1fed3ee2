import {
  type Administration,
  everyOrganization,
  type Gateway,
  GatewayError,
  type OrganizationScope,
  type WithActor,
} from "@tollgate/core";
import type { Command } from "commander";
import { CommandError } from "./failure.ts";
import { defaultActor, type Globals, globalsOf } from "./globals.ts";
import { openGateway } from "./open-gateway.ts";
import { secretInFile } from "./secrets.ts";

/** How a command prints, and who makes its changes. */
export interface Invocation {
  readonly json: boolean | undefined;
  /** Whether the gateway is elsewhere, behind its admin API. */
  readonly isRemote: boolean;
  /** Empty for a remote gateway: there the actor is the owner of the token. */
  readonly acting: WithActor;
}

/**
 * Runs an action on the administration of a gateway: of the one at `--url` over its admin API, or else of the configured one
 * in this process, which it always closes.
 */
export async function withAdministration<Result>(
  command: Command,
  action: (administration: Administration, invocation: Invocation) => Promise<Result>,
  prepare: (gateway: Gateway) => Promise<void> = async () => {},
): Promise<Result> {
  const globals = globalsOf(command);
  const { json, actor = defaultActor } = globals;
  if (isRemote(globals))
    return action(await remoteOf(globals), { json, isRemote: true, acting: {} });
  return withGateway(command, async (gateway) => {
    await prepare(gateway);
    return action(gateway, { json, isRemote: false, acting: { actor } });
  });
}

/** As `withAdministration`, for an action that only reads: it creates and upgrades no store of this machine. */
export async function withRecords<Result>(
  command: Command,
  action: (administration: Administration, invocation: Invocation) => Promise<Result>,
): Promise<Result> {
  return withAdministration(command, action, requireStore);
}

/** @throws CommandError unless the store exists and has the schema of this release */
export async function requireStore(gateway: Pick<Gateway, "checkStore">): Promise<void> {
  await gateway.checkStore().catch((thrown: unknown) => {
    const cause = thrown instanceof GatewayError ? thrown.cause : null;
    if (!(cause instanceof Error && "needsMigration" in cause)) throw thrown;
    throw new CommandError(
      `${cause.needsMigration}: create or upgrade it with 'tollgate migrate', 'tollgate serve' or a command that writes, such as 'keys create'`,
    );
  });
}

/**
 * Runs an action on the configured gateway, and always closes it.
 * @throws CommandError if a URL names a remote gateway
 */
export async function withGateway<Result>(
  command: Command,
  action: (gateway: Gateway) => Promise<Result>,
): Promise<Result> {
  requireLocal(command);
  const { gateway } = await openGateway(globalsOf(command).config);
  try {
    return await action(gateway);
  } finally {
    await gateway.close();
  }
}

/** @throws CommandError if a URL names a remote gateway, because the command needs the configuration of this machine */
export function requireLocal(command: Command): void {
  const globals = globalsOf(command);
  if (isRemote(globals))
    throw new CommandError(
      `'${command.name()}' works with the configuration of this machine: leave out --url and unset TOLLGATE_URL`,
      2,
    );
  if (globals.tokenFile !== undefined)
    throw new CommandError("--token-file requires --url or TOLLGATE_URL", 2);
  if (globals.insecure !== undefined)
    throw new CommandError("--insecure requires --url or TOLLGATE_URL", 2);
}

/** Returns the organization to read, or all organizations without one. */
export function organizationScope(
  organization: string | undefined,
): OrganizationScope["organizationId"] {
  return organization ?? everyOrganization;
}

/** An empty variable counts as undefined. */
function isRemote({ url }: Globals): boolean {
  return url !== undefined && url !== "";
}

async function remoteOf({
  url = "",
  tokenFile,
  insecure = false,
  config,
  actor,
}: Globals): Promise<Administration> {
  if (config !== undefined)
    throw new CommandError("pass either --config or a URL (--url or TOLLGATE_URL)", 2);
  if (actor !== undefined)
    throw new CommandError(
      "--actor is for the configuration of this machine: at a URL, the actor is the owner of the token",
      2,
    );
  const token =
    tokenFile === undefined ? process.env["TOLLGATE_TOKEN"] : await secretInFile(tokenFile);
  if (token === undefined || token === "")
    throw new CommandError(
      "put a token for the admin API in TOLLGATE_TOKEN, or name its file with --token-file",
      2,
    );
  if (!/^[\x21-\x7e]+$/.test(token))
    throw new CommandError("the token must be visible ASCII characters without spaces");
  const { remoteAdministration } = await import("@tollgate/admin");
  return remoteAdministration({ url, token, insecure });
}
