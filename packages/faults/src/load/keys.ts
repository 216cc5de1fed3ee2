import { createGateway } from "@tollgate/core";
import { scriptedProvider } from "@tollgate/testing";
import { type DatabaseLocation, openDatabase } from "../stores/database-location.ts";

/** Creates keys of one organization, in a process that does nothing else. */
export async function createSecrets(
  place: DatabaseLocation,
  { organizationId, count }: { readonly organizationId: string; readonly count: number },
): Promise<readonly string[]> {
  const providers = { test: scriptedProvider() };
  const gateway = createGateway({ store: openDatabase(place), providers, maintenance: false });
  const secrets: string[] = [];
  for (let number = 0; number < count; number++) {
    const who = { organizationId, userId: "jane", label: `key ${number}` };
    secrets.push((await gateway.keys.create(who)).secret);
  }
  await gateway.close();
  return secrets;
}
