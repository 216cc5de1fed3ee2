import type { ProviderCall } from "@tollgate/core/provider";
import { isCredential } from "./configuration.ts";
import { notSent } from "./failures.ts";
import type { OpenaiCompatibleOptions } from "./options.ts";

/** The credential this call is made with; null for an upstream without keys. A promise where a function is asked for it. */
export function credentialOf(
  { apiKey, connection }: OpenaiCompatibleOptions,
  call: Pick<ProviderCall, "credential">,
): string | null | Promise<string | null> {
  // Without a credential a customer's call must not leave, not even to an upstream that would take it.
  if (connection === "customer") return requireCredential(call.credential ?? undefined);
  return typeof apiKey === "function" ? credentialFrom(apiKey) : requireCredential(apiKey);
}

async function credentialFrom(apiKey: () => string | Promise<string>): Promise<string | null> {
  let value: unknown;
  try {
    value = await apiKey();
  } catch {
    throw notSent("credential_unavailable", "The provider's credential could not be read.");
  }
  return requireCredential(value ?? undefined);
}

function requireCredential(credential: unknown): string | null {
  if (credential === null || isCredential(credential)) return credential;
  throw notSent("credential_unavailable", "The provider's credential cannot be used.");
}
