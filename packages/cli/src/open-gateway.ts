import { everyOrganization, type Gateway, type OrganizationScope } from "@tollgate/core";
import type { ServeSettings } from "./configuration/data-schema.ts";
import { findConfiguration } from "./configuration/find-configuration.ts";

/** A gateway, and where its configuration came from. */
export interface OpenedGateway {
  readonly gateway: Gateway;
  /** The configuration file; null where there is none and the defaults hold. */
  readonly configuration: string | null;
  /** What the configuration file says about the server. */
  readonly serve: ServeSettings;
}

/** Creates the gateway that a command works on: from `--config`, from the file found, or by default. */
export async function openGateway(file: string | undefined): Promise<OpenedGateway> {
  const configuration = findConfiguration(process.cwd(), file);
  if (configuration === null) {
    const { createDefaultGateway } = await import("./configuration/default-gateway.ts");
    return { gateway: await createDefaultGateway(process.env), configuration, serve: {} };
  }
  const { loadConfiguration } = await import("./configuration/load-configuration.ts");
  const { gateway, serve } = await loadConfiguration(configuration, process.env);
  return { gateway, configuration, serve };
}

/** Runs an action on the gateway and closes it, whatever happens. */
export async function withGateway<Result>(
  file: string | undefined,
  action: (gateway: Gateway) => Promise<Result>,
): Promise<Result> {
  const { gateway } = await openGateway(file);
  try {
    return await action(gateway);
  } finally {
    await gateway.close();
  }
}

/** Whose records to read: one organization's, or, when none is named, everyone's. */
export function tenantOf(organization: string | undefined): OrganizationScope["organizationId"] {
  return organization ?? everyOrganization;
}
