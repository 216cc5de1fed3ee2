import { orAborted, type ProviderCall } from "@tollgate/core/provider";
import { notSent } from "./failures.ts";
import type { AiSdkOptions } from "./options.ts";

/** The credential this call is made with. */
export async function credentialOf(
  { connection, apiKey = "" }: AiSdkOptions,
  call: ProviderCall,
): Promise<string> {
  if (connection === "customer") {
    // Without a credential a customer's call must not leave: the AI SDK would look for one in the environment.
    if (call.credential) return call.credential;
    throw notSent("credential_unavailable", "The organization's credential is missing.");
  }
  if (typeof apiKey === "string") return apiKey;
  try {
    const credential = await orAborted(call.signal, async () => apiKey());
    if (credential !== "") return credential;
  } catch {
    call.signal.throwIfAborted();
  }
  throw notSent("credential_unavailable", "The provider's credential could not be read.");
}
