import { everyOrganization, type Gateway, type OrganizationScope } from "@tollgate/core";
import { findConfiguration } from "./configuration/find-configuration.ts";
import type { LoadedConfiguration } from "./configuration/load-configuration.ts";

/** A gateway, and where its configuration came from. */
export interface OpenedGateway extends LoadedConfiguration {
  /** The configuration file; null where there is none and the defaults hold. */
  readonly configuration: string | null;
}

/** Creates the gateway that a command works on: from `--config`, from the file found, or by default. */
export async function openGateway(file: string | undefined): Promise<OpenedGateway> {
  const configuration = findConfiguration(process.cwd(), file);
  if (configuration !== null) {
    const { loadConfiguration } = await import("./configuration/load-configuration.ts");
    return { ...(await loadConfiguration(configuration, process.env)), configuration };
  }
  const [{ createGateway }, { defaultOptions }] = await Promise.all([
    import("@tollgate/core"),
    import("./configuration/default-gateway.ts"),
  ]);
  const options = await defaultOptions(process.env);
  return { gateway: createGateway(options), options, serve: {}, configuration };
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
export function organizationScope(
  organization: string | undefined,
): OrganizationScope["organizationId"] {
  return organization ?? everyOrganization;
}
