import { ProviderError } from "@tollgate/core/provider";
import { notSent } from "./failures.ts";

/** The calls that are under way, so that closing can end them. */
export interface OpenCalls {
  /** @throws ProviderError when closed */
  begin(caller: AbortSignal): OpenCall;
  close(): void;
}

export interface OpenCall {
  /** Aborts when the caller leaves, the provider is closed or the call is over. */
  readonly signal: AbortSignal;
  end(): void;
}

export function createOpenCalls(): OpenCalls {
  const open = new Set<AbortController>();
  let closed = false;
  return {
    begin(caller) {
      caller.throwIfAborted();
      if (closed) throw notSent("provider_closed", "The provider is closed.");
      const controller = new AbortController();
      const leave = (): void => controller.abort(caller.reason);
      caller.addEventListener("abort", leave, { once: true });
      open.add(controller);
      return {
        signal: controller.signal,
        end() {
          caller.removeEventListener("abort", leave);
          open.delete(controller);
          controller.abort();
        },
      };
    },
    close() {
      closed = true;
      for (const controller of open)
        controller.abort(
          new ProviderError("The provider was closed before its answer was complete.", {
            reason: "provider_closed",
            delivery: "unknown",
          }),
        );
    },
  };
}
