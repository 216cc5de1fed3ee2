import type { Owner } from "@tollgate/core/store";
import {
  chainLength,
  chainSlice,
  type SessionState,
  type SessionView,
} from "@tollgate/store-engine";
import { readRow } from "../rows/row-reader.ts";
import { sessionRecordFromRow } from "../rows/session-row.ts";
import { openStepStatements } from "../statements/open-step.ts";
import { transcriptStatements } from "../statements/transcript.ts";
import type { Reads } from "./reads.ts";

/** The reads of Session assignment, each time from the database. */
export class SessionReads implements SessionView {
  readonly #reads: Reads;

  constructor(reads: Reads) {
    this.#reads = reads;
  }

  session(organizationId: string, id: string): SessionState | null {
    return this.#one(openStepStatements.session, organizationId, id);
  }

  sessionOfTurn(organizationId: string, turnId: string): SessionState | null {
    return this.#one(openStepStatements.sessionOfTurn, organizationId, turnId);
  }

  recentMatches(owner: Owner, source: string, chain: Uint8Array): readonly SessionState[] {
    const { organizationId: organization_id, keyId: key_id } = owner;
    const parameters = { organization_id, key_id, source, chain, length: chainLength(chain) };
    return this.#reads.all(openStepStatements.recentMatches, parameters).map(sessionRecordFromRow);
  }

  /** Every Session that a request without ids may continue, most recently updated first. */
  recent({ organizationId, keyId }: Owner, source: string): readonly SessionState[] {
    const parameters = { organization_id: organizationId, key_id: keyId, source };
    return this.#reads.all(openStepStatements.recent, parameters).map(sessionRecordFromRow);
  }

  matchingBranches(session: SessionState, chain: Uint8Array): readonly SessionState[] {
    const { organizationId: organization_id, id, rootSessionId } = session;
    const root_session_id = rootSessionId ?? id;
    const parameters = { organization_id, root_session_id, chain, length: chainLength(chain) };
    return this.#reads
      .all(openStepStatements.matchingBranches, parameters)
      .map(sessionRecordFromRow);
  }

  chainBefore({ organizationId, id }: SessionState, end: number): Uint8Array {
    const parameters = { organization_id: organizationId, session_id: id, end };
    const rows = this.#reads.all(transcriptStatements.chains, parameters);
    return Buffer.concat(rows.map((row) => chainOfPart(row, end)));
  }

  #one(statement: string, organizationId: string, id: string): SessionState | null {
    const row = this.#reads.get(statement, { organization_id: organizationId, id });
    return row === undefined ? null : sessionRecordFromRow(row);
  }
}

/** A part's chain values before a position. */
function chainOfPart(row: unknown, end: number): Uint8Array {
  const part = readRow(row);
  const kept = Math.min(part.integer("count"), end - part.integer("position"));
  return chainSlice(part.bytes("chain"), 0, kept);
}
