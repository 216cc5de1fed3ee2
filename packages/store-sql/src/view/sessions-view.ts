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
export function viewSessions({ get, all }: Reads): SessionView {
  const named = (statement: string, organizationId: string, id: string): SessionState | null => {
    const row = get(statement, { organization_id: organizationId, id });
    return row === undefined ? null : sessionRecordFromRow(row);
  };
  return {
    session: (organizationId, id) => named(openStepStatements.session, organizationId, id),
    sessionOfTurn: (organizationId, turnId) =>
      named(openStepStatements.sessionOfTurn, organizationId, turnId),
    recentMatches({ organizationId: organization_id, keyId: key_id }, source, chain) {
      const parameters = { organization_id, key_id, source, chain, length: chainLength(chain) };
      return all(openStepStatements.recentMatches, parameters).map(sessionRecordFromRow);
    },
    matchingBranches({ organizationId: organization_id, id, rootSessionId }, chain) {
      const root_session_id = rootSessionId ?? id;
      const parameters = { organization_id, root_session_id, chain, length: chainLength(chain) };
      return all(openStepStatements.matchingBranches, parameters).map(sessionRecordFromRow);
    },
    chainBefore({ organizationId, id }, end) {
      const parameters = { organization_id: organizationId, session_id: id, end };
      const rows = all(transcriptStatements.chains, parameters);
      return Buffer.concat(rows.map((row) => chainOfPart(row, end)));
    },
  };
}

/** Every Session that a request without ids may continue, most recently updated first. */
export function recentSessions(
  { all }: Pick<Reads, "all">,
  { organizationId, keyId }: Owner,
  source: string,
): readonly SessionState[] {
  const parameters = { organization_id: organizationId, key_id: keyId, source };
  return all(openStepStatements.recent, parameters).map(sessionRecordFromRow);
}

/** A part's chain values before a position. */
function chainOfPart(row: unknown, end: number): Uint8Array {
  const part = readRow(row);
  const kept = Math.min(part.integer("count"), end - part.integer("position"));
  return chainSlice(part.bytes("chain"), 0, kept);
}
