import { createGateway, type SecretKeys } from "@tollgate/core";
import { serve } from "@tollgate/node";
import { openaiCompatible } from "@tollgate/provider-openai";
import { serveAsProcess } from "@tollgate/testing";
import {
  type DatabaseLocation,
  isDatabaseLocation,
  openDatabase,
} from "./stores/database-location.ts";

/** Settings of a process with one customer-owned gateway. */
export interface CredentialProcessSettings {
  readonly place: DatabaseLocation;
  readonly upstream: string;
  readonly secrets: SecretKeys;
}

serveAsProcess(async (settings) => {
  if (!isSettings(settings))
    throw new Error("The settings must contain a database, an upstream and secrets.");
  const { place, upstream, secrets } = settings;
  const gateway = createGateway({
    store: openDatabase(place),
    providers: { own: openaiCompatible({ baseURL: `${upstream}/v1`, connection: "customer" }) },
    retries: { max: 0 },
    secrets,
  });
  await gateway.ready();
  const server = await serve(gateway, {
    port: 0,
    limits: { closing: 2_000 },
    close: gateway.close,
  });
  return {
    url: server.url,
    commands: { reseal: () => gateway.connections.reseal({ actor: "ops" }) },
    async close() {
      await server.close();
      await gateway.close();
    },
  };
});

function isSettings(value: unknown): value is CredentialProcessSettings {
  return (
    typeof value === "object" &&
    value !== null &&
    "place" in value &&
    isDatabaseLocation(value.place) &&
    "upstream" in value &&
    "secrets" in value
  );
}
