import type { KeyRepository } from "../contracts/key-repository.ts";
import type { Owner } from "../domain/caller.ts";
import type { Clock } from "../kernel/clock.ts";

/** Records when keys were used, and writes it in batches. */
export interface LastUsed {
  note(owner: Owner): void;
  /** Writes all recorded uses and stops. */
  close(): Promise<void>;
}

const flushIntervalMs = 30_000;
/** How many keys are written at once. While the store fails, no more are kept than this. */
const maxNoted = 10_000;

export function createLastUsed(keys: Pick<KeyRepository, "touch">, clock: Clock): LastUsed {
  let noted = new Map<string, { organizationId: string; keyId: string; at: number }>();
  let cancel: (() => void) | null = null;
  let isClosed = false;

  /** After a failure, the uses are kept for the next time. */
  async function flush(): Promise<void> {
    const uses = noted;
    if (uses.size === 0) return;
    noted = new Map();
    try {
      await keys.touch([...uses.values()]);
    } catch {
      noted = new Map([...uses, ...noted].slice(-maxNoted));
    }
  }

  function flushLater(): void {
    cancel = null;
    void flush();
  }

  return {
    note({ organizationId, keyId }) {
      const name = `${organizationId}/${keyId}`;
      const use = noted.get(name);
      if (use) use.at = clock.now();
      else if (noted.size < maxNoted) noted.set(name, { organizationId, keyId, at: clock.now() });
      else return;
      if (isClosed) return;
      cancel ??= clock.after(flushIntervalMs, flushLater, { background: true });
    },
    close() {
      isClosed = true;
      cancel?.();
      return flush();
    },
  };
}
