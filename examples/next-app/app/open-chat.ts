"use server";

import { randomUUID } from "node:crypto";
import { gateway, organizationId } from "./gateway.ts";

const oneHourMs = 3_600_000;

/**
 * A Gateway API key for the visitor's browser, good for an hour. It opens this gateway alone, under its policy and
 * budget; keys of providers never leave the server. An app with sign-in asks here who the visitor is.
 */
export async function openChat(): Promise<string> {
  const { secret } = await gateway.keys.create({
    organizationId,
    userId: `visitor-${randomUUID()}`,
    label: "chat page",
    expiresAt: new Date(Date.now() + oneHourMs).toISOString(),
  });
  return secret;
}
