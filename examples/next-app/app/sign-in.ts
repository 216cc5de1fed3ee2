"use server";

import { randomUUID } from "node:crypto";
import { cookies } from "next/headers";
import { cookieName } from "./visitor.ts";

const oneDaySeconds = 86_400;

/**
 * Gives the browser a cookie by which `visitorOf` recognizes its visitor. Scripts can't read the cookie, and no key of
 * the gateway or of a provider ever leaves the server.
 */
export async function signIn(): Promise<void> {
  const kept = await cookies();
  if (kept.has(cookieName)) return;
  kept.set(cookieName, randomUUID(), {
    httpOnly: true,
    sameSite: "strict",
    path: "/",
    maxAge: oneDaySeconds,
  });
}
