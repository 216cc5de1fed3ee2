import { everyOrganization, type Gateway, type KeyRecord } from "@tollgate/core";

/** The key made on the first start; both are null on later ones. */
export interface FirstKey {
  readonly key: KeyRecord | null;
  readonly secret: string | null;
}

/** Makes a key where there is none yet, so that a new gateway can be tried at once. */
export async function firstKey(gateway: Gateway, actor: string): Promise<FirstKey> {
  const { data } = await gateway.keys.list({ organizationId: everyOrganization }, { limit: 1 });
  if (data.length > 0) return { key: null, secret: null };
  return gateway.keys.create({
    organizationId: "default",
    userId: "default",
    label: "first key",
    actor,
  });
}
