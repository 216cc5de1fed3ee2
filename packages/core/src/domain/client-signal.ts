/** Signals that a client has left. The part of AbortSignal that the gateway uses. */
export interface ClientSignal {
  readonly aborted: boolean;
  readonly reason: unknown;
  addEventListener(type: "abort", run: () => void, options?: { readonly once: true }): void;
  removeEventListener(type: "abort", run: () => void): void;
}
