import type { KeyRepository } from "../contracts/store.ts";
import type { Owner } from "../domain/caller.ts";
import type { Clock } from "../kernel/clock.ts";

/** Notes which keys were used, and writes it in batches. */
export interface LastUsed {
  note(owner: Owner): void;
  /** Writes what is noted; a failure keeps it for the next time. */
  flush(): Promise<void>;
}

const flushEvery = 30_000;

export function createLastUsed(keys: KeyRepository, clock: Clock): LastUsed {
  let noted = new Map<
    string,
    { readonly organizationId: string; readonly keyId: string; readonly at: number }
  >();
  let isScheduled = false;

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
      if (isScheduled) return;
      isScheduled = true;
      clock.after(flushEvery, () => {
        isScheduled = false;
        void flush();
      });
    },
    flush,
  };
}
