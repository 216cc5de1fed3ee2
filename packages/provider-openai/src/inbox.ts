/** Bytes between the socket that brings them and the one reader that takes them. */
export interface Inbox {
  push(chunk: Uint8Array): void;
  /** How much waits to be read. */
  waiting(): number;
  /** No more will come: a clean end, or a failure thrown to the reader. The first end wins. */
  end(failure?: { readonly thrown: unknown }): void;
  ended(): boolean;
  /** Forgets what waits. */
  discard(): void;
  /** All that waits, as soon as there is anything; null at a clean end. */
  take(): Promise<readonly Uint8Array[] | null>;
}

export function createInbox(): Inbox {
  let chunks: Uint8Array[] = [];
  let bytes = 0;
  let end: { readonly failure: { readonly thrown: unknown } | null } | null = null;
  let wake = (): void => {};

  const empty = (): readonly Uint8Array[] => {
    const taken = chunks;
    chunks = [];
    bytes = 0;
    return taken;
  };
  return {
    push(chunk) {
      chunks.push(chunk);
      bytes += chunk.length;
      wake();
    },
    waiting: () => bytes,
    end(failure) {
      end ??= { failure: failure ?? null };
      wake();
    },
    ended: () => end !== null,
    discard() {
      empty();
    },
    async take() {
      while (chunks.length === 0) {
        if (end?.failure) throw end.failure.thrown;
        if (end) return null;
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
      return empty();
    },
  };
}
