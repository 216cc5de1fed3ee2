import { ProviderError } from "../contracts/provider.ts";
import type { ConnectionRepository } from "../contracts/repositories.ts";
import type { SealedConnection } from "../domain/connection.ts";
import type { Clock } from "../kernel/clock.ts";
import type { Vault } from "./vault.ts";

/** Whose credential for which gateway. */
export interface CredentialOwner {
  readonly organizationId: string;
  readonly gateway: string;
}

/** The organizations' own credentials, from reads at most 5 seconds old: so long a removed one may still be used. */
export interface CredentialBook {
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

const bound = 10_000;
const lifetimeMs = 5_000;

export function createCredentialBook(
  repository: ConnectionRepository,
  vault: Vault,
  clock: Clock,
): CredentialBook {
  const entries = new Map<string, Entry>();

  async function read(owner: CredentialOwner): Promise<Entry | null> {
    const readAt = clock.monotonic();
    const connection = await repository.get(owner.organizationId, owner.gateway);
    entries.delete(nameOf(owner));
    if (!connection) return null;
    const oldest = entries.size >= bound ? entries.keys().next() : null;
    if (oldest && !oldest.done) entries.delete(oldest.value);
    const entry: Entry = { connection, readAt, dataKey: null };
    entries.set(nameOf(owner), entry);
    return entry;
  }

  async function find(owner: CredentialOwner): Promise<Entry | null> {
    const known = entries.get(nameOf(owner));
    const isYoung = known !== undefined && clock.monotonic() - known.readAt < lifetimeMs;
    return isYoung ? known : read(owner);
  }

  /** Callers share one unwrapping; one that failed is tried again by the next. */
  async function openEntry(entry: Entry): Promise<string> {
    const { connection } = entry;
    const dataKey = entry.dataKey ?? vault.unwrap(connection);
    entry.dataKey = dataKey;
    dataKey.catch(() => {
      entry.dataKey = null;
    });
    return vault.open(connection, await dataKey);
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
