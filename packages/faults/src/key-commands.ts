import type { Authenticate, Gateway } from "@tollgate/core";

const organizationId = "acme";

/** How long a rotated secret lives on, in milliseconds: longer than a test takes. */
export const overlapMs = 60_000;

/** Knows whoever says who they are, as a host that trusts its network might. */
export const authenticate: Authenticate = (request) => {
  const userId = request.headers.get("x-user");
  return userId === null ? null : { organizationId, userId, label: "web" };
};

/** What a test can ask a gateway process about the keys of its organization. */
export function keyCommands({ keys }: Gateway) {
  return {
    createKey: async (user: unknown) => {
      const who = { organizationId, userId: String(user ?? "jane"), label: "test key" };
      const { key, secret } = await keys.create(who);
      return { id: key.id, secret };
    },
    rotateKey: async (id: unknown) =>
      (await keys.rotate({ organizationId, id: String(id), overlap: overlapMs })).secret,
    replaceKey: async (id: unknown) =>
      (await keys.rotate({ organizationId, id: String(id) })).secret,
    keysOf: async (user: unknown) =>
      (await keys.list({ organizationId, userId: String(user) })).data.map(({ id }) => id),
    revokeKey: (id: unknown) => keys.revoke({ organizationId, id: String(id) }),
    revokeUser: (user: unknown) => keys.revoke({ organizationId, userId: String(user) }),
  };
}
