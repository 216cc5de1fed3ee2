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
  /** Resolves as soon as there is something to take, or the end; null where there is already. */
  ready(): Promise<void> | null;
  /** All that waits; null at a clean end. Throws at a failure. */
  take(): readonly Uint8Array[] | null;
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
    ready() {
      if (chunks.length > 0 || end !== null) return null;
      return new Promise((resolve) => {
        wake = resolve;
      });
    },
    take() {
      if (chunks.length > 0) return empty();
      if (end?.failure) throw end.failure.thrown;
      return end === null ? [] : null;
    },
  };
}
