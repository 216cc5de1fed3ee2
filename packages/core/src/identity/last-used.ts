import type { KeyRepository } from "../contracts/key-repository.ts";
import type { Owner } from "../domain/caller.ts";
import type { Clock } from "../kernel/clock.ts";

/** Notes which keys were used, and writes it in batches. */
export interface LastUsed {
  note(owner: Owner): void;
  /** Writes what is noted, and notes nothing more. */
  close(): Promise<void>;
}

const flushEvery = 30_000;

export function createLastUsed(keys: KeyRepository, clock: Clock): LastUsed {
  let noted = new Map<
    string,
    { readonly organizationId: string; readonly keyId: string; readonly at: number }
  >();
  let cancel: (() => void) | null = null;
  let isClosed = false;

  /** A failure keeps what is noted for the next time. */
  async function flush(): Promise<void> {
    const uses = noted;
    if (uses.size === 0) return;
    noted = new Map();
    try {
      await keys.touch([...uses.values()]);
    } catch {
      noted = new Map([...uses, ...noted]);
    }
  }

  return {
    note({ organizationId, keyId }) {
      noted.set(`${organizationId}/${keyId}`, { organizationId, keyId, at: clock.now() });
      if (isClosed) return;
      cancel ??= clock.after(flushEvery, () => {
        cancel = null;
        void flush();
      });
    },
    close() {
      isClosed = true;
      cancel?.();
      return flush();
    },
  };
}
