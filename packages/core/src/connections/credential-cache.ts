import { ProviderError } from "../contracts/provider.ts";
import type { ConnectionRepository } from "../contracts/repositories.ts";
import type { SealedConnection } from "../domain/gateway-connection.ts";
import type { Clock } from "../kernel/clock.ts";
import type { CredentialSealer } from "./credential-sealer.ts";

/** The organization and the gateway that a credential is for. */
interface CredentialOwner {
  readonly organizationId: string;
  readonly gateway: string;
}

/**
 * The organizations' own credentials. Reads are at most 5 seconds old, so a removed credential may be used that long.
 */
export interface CredentialCache {
  /** Whether the organization has one. Never caches that it has none. */
  has(owner: CredentialOwner): Promise<boolean>;
  /**
   * Decrypts the credential. `fresh` reads it again first.
   * @throws ProviderError `connection_unavailable` if it is missing or can't be decrypted; nothing is sent then
   */
  open(owner: CredentialOwner, options: { readonly fresh: boolean }): Promise<string>;
  /** Makes the next request read it again. */
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
  const isFresh = ({ readAt }: Entry): boolean => clock.monotonic() - readAt < lifetimeMs;

  /** Entries are in the order of their reads. Drops outdated and surplus entries from the start. */
  function keep(name: string, entry: Entry | null): void {
    entries.delete(name);
    for (const [first, old] of entries) {
      if (entries.size < maxEntries && isFresh(old)) break;
      entries.delete(first);
    }
    if (entry) entries.set(name, entry);
  }

  /** A result is dropped if the credential was forgotten or read again in the meantime. */
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

  /** Callers share a pending read. */
  async function find(owner: CredentialOwner): Promise<Entry | null> {
    const known = entries.get(nameOf(owner));
    return known && isFresh(known) ? known : (readings.get(nameOf(owner)) ?? read(owner));
  }

  /** Callers share a pending unwrap. After a failure, the next caller tries again. */
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
  return new ProviderError("Your organization's own Gateway API key is currently unavailable.", {
    reason: "connection_unavailable",
    delivery: "not-sent",
    status: 503,
  });
}
