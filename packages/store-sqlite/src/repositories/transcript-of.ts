import { messagePrefix, type TranscriptPart } from "@tollgate/core/store";
import { lineageOf, type SessionState } from "@tollgate/store-engine";
import { readRow, SessionReads, transcriptStatements } from "@tollgate/store-sql";
import type { SqliteConnection } from "../database/connection.ts";

/** What the Steps of a Session, and of those it branched from, appended. */
export function transcriptOf(
  connection: SqliteConnection,
  session: SessionState,
  from: number,
): readonly TranscriptPart[] {
  return lineageOf(new SessionReads(connection), session).flatMap((segment) => {
    const { organizationId, id } = segment.session;
    const rows = connection.all(transcriptStatements.parts, {
      organization_id: organizationId,
      session_id: id,
      end: segment.end,
      from,
    });
    return rows.map((row) => partUpTo(row, segment.end));
  });
}

/** A part, cut where a branch diverged within it. */
function partUpTo(row: unknown, end: number): TranscriptPart {
  const read = readRow(row);
  const from = read.integer("position");
  const fullCount = read.integer("count");
  const count = Math.min(fullCount, end - from);
  const content = read.bytesOrNull("content");
  return {
    stepId: read.text("step_id"),
    kind: read.text("kind") === "reply" ? "reply" : "request",
    from,
    count,
    content:
      content && count < fullCount ? Uint8Array.from(messagePrefix(content, count)) : content,
  };
}
