import type { Owner } from "@tollgate/core/store";
import {
  chainLength,
  chainSlice,
  type SessionRecord,
  type SessionView,
} from "@tollgate/store-engine";
import { opening, reading, readRow, sessionRecordFromRow } from "@tollgate/store-sql";
import type { Connection } from "../database/connection.ts";

/** What assignments read, each time from the database. */
export class SessionReads implements SessionView {
  readonly #connection: Pick<Connection, "get" | "all">;

  constructor(connection: Pick<Connection, "get" | "all">) {
    this.#connection = connection;
  }

  session(organizationId: string, id: string): SessionRecord | null {
    return this.#one(opening.session, organizationId, id);
  }

  sessionOfTurn(organizationId: string, turnId: string): SessionRecord | null {
    return this.#one(opening.sessionOfTurn, organizationId, turnId);
  }

  recentMatches(owner: Owner, source: string, chain: Uint8Array): readonly SessionRecord[] {
    const { organizationId: organization_id, keyId: key_id } = owner;
    const parameters = { organization_id, key_id, source, chain, length: chainLength(chain) };
    return this.#connection.all(opening.recentMatches, parameters).map(sessionRecordFromRow);
  }

  /** All that a request without ids may continue, most recently updated first. */
  recent({ organizationId, keyId }: Owner, source: string): readonly SessionRecord[] {
    const parameters = { organization_id: organizationId, key_id: keyId, source };
    return this.#connection.all(opening.recent, parameters).map(sessionRecordFromRow);
  }

  matchingBranches(session: SessionRecord, chain: Uint8Array): readonly SessionRecord[] {
    const { organizationId: organization_id, id } = session;
    const parameters = { organization_id, id, chain, length: chainLength(chain) };
    return this.#connection.all(opening.matchingBranches, parameters).map(sessionRecordFromRow);
  }

  chainBefore({ organizationId, id }: SessionRecord, end: number): Uint8Array {
    const parameters = { organization_id: organizationId, session_id: id, end };
    const rows = this.#connection.all(reading.chains, parameters);
    return Buffer.concat(rows.map((row) => chainOfPart(row, end)));
  }

  #one(statement: string, organizationId: string, id: string): SessionRecord | null {
    const row = this.#connection.get(statement, { organization_id: organizationId, id });
    return row === undefined ? null : sessionRecordFromRow(row);
  }
}

/** What a part has before a position. */
function chainOfPart(row: unknown, end: number): Uint8Array {
  const part = readRow(row);
  const kept = Math.min(part.integer("count"), end - part.integer("position"));
  return chainSlice(part.bytes("chain"), 0, kept);
}
