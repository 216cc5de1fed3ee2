import { orAborted, type ProviderCall } from "@tollgate/core/provider";
import { isCredential } from "./configuration.ts";
import { notSent } from "./failures.ts";
import type { OpenaiCompatibleOptions } from "./options.ts";

/** The credential this call is made with; null for an upstream without keys. */
export async function credentialOf(
  options: OpenaiCompatibleOptions,
  call: Pick<ProviderCall, "credential" | "signal">,
): Promise<string | null> {
  const credential = await givenCredential(options, call);
  if (credential === null || isCredential(credential)) return credential;
  throw notSent("credential_unavailable", "The provider's credential cannot be used.");
}

async function givenCredential(
  { apiKey, connection }: OpenaiCompatibleOptions,
  call: Pick<ProviderCall, "credential" | "signal">,
): Promise<unknown> {
  // Without a credential a customer's call must not leave, not even to an upstream that would take it.
  if (connection === "customer") return call.credential ?? undefined;
  if (typeof apiKey !== "function") return apiKey;
  try {
    return (await orAborted(call.signal, async () => apiKey())) ?? undefined;
  } catch {
    call.signal.throwIfAborted();
    throw notSent("credential_unavailable", "The provider's credential could not be read.");
  }
}
