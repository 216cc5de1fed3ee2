import type { SessionRecord } from "@tollgate/store-engine";
import { reading, sessionRecordFromRow } from "@tollgate/store-sql";
import type { Connection } from "../database/connection.ts";

/** A Session of a lineage, and the position in the transcript up to which its parts count. */
export interface Stretch {
  readonly session: SessionRecord;
  readonly end: number;
}

/** A branch begins with what it shares with its origin, so its history is that of several Sessions, oldest first. */
export async function lineageOf(
  connection: Pick<Connection, "get">,
  session: SessionRecord,
): Promise<readonly Stretch[]> {
  const stretches: Stretch[] = [];
  let end = session.length;
  for (let at: SessionRecord | null = session; at && end > 0; at = await originOf(connection, at)) {
    stretches.unshift({ session: at, end });
    end = Math.min(end, at.commonLength);
  }
  return stretches;
}

async function originOf(
  connection: Pick<Connection, "get">,
  { organizationId, branchedFromSessionId }: SessionRecord,
): Promise<SessionRecord | null> {
  if (branchedFromSessionId === null) return null;
  const row = await connection.get(reading.session, {
    organization_id: organizationId,
    id: branchedFromSessionId,
  });
  return row === undefined ? null : sessionRecordFromRow(row);
}
