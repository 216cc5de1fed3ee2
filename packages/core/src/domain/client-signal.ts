/** Says when a client hangs up: what the gateway uses of an AbortSignal, which is one. */
export interface ClientSignal {
  readonly aborted: boolean;
  readonly reason: unknown;
  addEventListener(type: "abort", run: () => void, options?: { readonly once: true }): void;
  removeEventListener(type: "abort", run: () => void): void;
}
