import { createGateway } from "@tollgate/core";
import { scriptedProvider } from "@tollgate/testing";
import { openPlace, type Place } from "../stores/place.ts";

/** Keys of one organization, made by a process that does nothing else. */
export async function createSecrets(
  place: Place,
  { organizationId, count }: { readonly organizationId: string; readonly count: number },
): Promise<readonly string[]> {
  const providers = { test: scriptedProvider() };
  const gateway = createGateway({ store: openPlace(place), providers, maintenance: false });
  const secrets: string[] = [];
  for (let number = 0; number < count; number++) {
    const who = { organizationId, userId: "jane", label: `key ${number}` };
    secrets.push((await gateway.keys.create(who)).secret);
  }
  await gateway.close();
  return secrets;
}
