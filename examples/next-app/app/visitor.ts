import type { HostCaller } from "@tollgate/core";

export const organizationId = "example";
export const cookieName = "visitor";

const cookie = new RegExp(`(?:^|; *)${cookieName}=([0-9a-f-]{36})(?:;|$)`);

/**
 * Says who sent a request: the visitor with this cookie, or nobody. An app with sign-in looks up its session here.
 */
export function visitorOf(request: Request): HostCaller | null {
  const id = cookie.exec(request.headers.get("cookie") ?? "")?.[1];
  if (id === undefined) return null;
  return { organizationId, userId: `visitor-${id}`, label: "chat page", source: "chat" };
}
