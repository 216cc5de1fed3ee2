import { ProviderError } from "../contracts/provider.ts";
import type { ConnectionRepository } from "../contracts/repositories.ts";
import type { SealedConnection } from "../domain/gateway-connection.ts";
import type { Clock } from "../kernel/clock.ts";
import type { CredentialSealer } from "./credential-sealer.ts";

/** Whose credential for which gateway. */
interface CredentialOwner {
  readonly organizationId: string;
  readonly gateway: string;
}

/** The organizations' own credentials, from reads at most 5 seconds old: so long a removed one may still be used. */
export interface CredentialCache {
  /** Whether the organization has one. That it has none is never remembered. */
  has(owner: CredentialOwner): Promise<boolean>;
  /**
   * The credential, open; `fresh` reads it anew.
   * @throws ProviderError `connection_unavailable` where it is gone or cannot be opened: nothing is sent
   */
  open(owner: CredentialOwner, options: { readonly fresh: boolean }): Promise<string>;
  /** The next request reads anew. */
  forget(owner: CredentialOwner): void;
}

interface Entry {
  readonly connection: SealedConnection;
  readonly readAt: number;
  dataKey: Promise<Uint8Array> | null;
}

const maxEntries = 10_000;
const lifetimeMs = 5_000;

export function createCredentialCache(
  repository: ConnectionRepository,
  sealer: CredentialSealer,
  clock: Clock,
): CredentialCache {
  const entries = new Map<string, Entry>();
  const readings = new Map<string, Promise<Entry | null>>();
  const isYoung = ({ readAt }: Entry): boolean => clock.monotonic() - readAt < lifetimeMs;

  /** In the order of reading, so that what is too old, or too much, stands first. */
  function keep(name: string, entry: Entry | null): void {
    entries.delete(name);
    for (const [first, old] of entries) {
      if (entries.size < maxEntries && isYoung(old)) break;
      entries.delete(first);
    }
    if (entry) entries.set(name, entry);
  }

  /** What somebody forgot, or read anew, while it was read is not kept. */
  function read(owner: CredentialOwner): Promise<Entry | null> {
    const name = nameOf(owner);
    const readAt = clock.monotonic();
    const reading = repository
      .get(owner.organizationId, owner.gateway)
      .then((connection): Entry | null => connection && { connection, readAt, dataKey: null });
    const end = (): boolean => readings.get(name) === reading && readings.delete(name);
    reading.then((entry) => end() && keep(name, entry), end);
    readings.set(name, reading);
    return reading;
  }

  /** Callers share one reading. */
  async function find(owner: CredentialOwner): Promise<Entry | null> {
    const known = entries.get(nameOf(owner));
    return known && isYoung(known) ? known : (readings.get(nameOf(owner)) ?? read(owner));
  }

  /** Callers share one unwrapping; one that failed is tried again by the next. */
  async function openEntry(entry: Entry): Promise<string> {
    const { connection } = entry;
    const dataKey = entry.dataKey ?? sealer.unwrap(connection);
    entry.dataKey = dataKey;
    dataKey.catch(() => {
      entry.dataKey = null;
    });
    return sealer.open(connection, await dataKey);
  }

  return {
    has: async (owner) => (await find(owner)) !== null,
    async open(owner, { fresh }) {
      const entry = await (fresh ? read(owner) : find(owner)).catch(() => null);
      if (entry === null) throw unavailable();
      return openEntry(entry).catch(() => {
        throw unavailable();
      });
    },
    forget(owner) {
      entries.delete(nameOf(owner));
      readings.delete(nameOf(owner));
    },
  };
}

function nameOf({ organizationId, gateway }: CredentialOwner): string {
  return `${organizationId}/${gateway}`;
}

function unavailable(): ProviderError {
  return new ProviderError("Your organization's own Gateway API key cannot be used now.", {
    reason: "connection_unavailable",
    delivery: "not-sent",
    status: 503,
  });
}
