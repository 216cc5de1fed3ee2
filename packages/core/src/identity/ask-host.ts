import type { Authenticate } from "../contracts/authenticate.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import type { Clock } from "../kernel/clock.ts";
import { type NamedCaller, readCaller } from "./named-caller.ts";

/** How long the host may take to say who calls. Milliseconds. */
const maxAuthenticationMs = 10_000;

/**
 * Asks the host for whom a request is; null where it knows nobody.
 * @throws GatewayError `unauthenticated` as the host threw it; `authentication_unavailable` when it throws, takes too long, or names what is no caller
 */
export async function askHost(
  authenticate: Authenticate,
  request: Request,
  { clock, dataClasses }: { readonly clock: Clock; readonly dataClasses: readonly string[] },
): Promise<NamedCaller | null> {
  const late = Promise.withResolvers<never>();
  const cancel = clock.after(maxAuthenticationMs, () =>
    late.reject(new Error("The host application did not answer in time.")),
  );
  try {
    const caller = await Promise.race([authenticate(request), late.promise]);
    return caller == null ? null : readCaller(caller, dataClasses);
  } catch (cause) {
    if (cause instanceof GatewayError && cause.code === "unauthenticated") throw cause;
    throw new GatewayError(
      "authentication_unavailable",
      "The application that hosts the gateway could not say who is calling.",
      { cause },
    );
  } finally {
    cancel();
  }
}
