import { messagePrefix, type TranscriptPart } from "@tollgate/core/store";
import { lineageOf, type SessionRecord } from "@tollgate/store-engine";
import { reading, readRow, SessionReads } from "@tollgate/store-sql";
import type { Connection } from "../database/connection.ts";

/** What the Steps of a Session, and of those it branched from, appended. */
export function transcriptOf(
  connection: Connection,
  session: SessionRecord,
  from: number,
): readonly TranscriptPart[] {
  return lineageOf(new SessionReads(connection), session).flatMap((stretch) => {
    const { organizationId, id } = stretch.session;
    const rows = connection.all(reading.parts, {
      organization_id: organizationId,
      session_id: id,
      end: stretch.end,
      from,
    });
    return rows.map((row) => partUpTo(row, stretch.end));
  });
}

/** A part, cut where a branch diverged within it. */
function partUpTo(row: unknown, end: number): TranscriptPart {
  const read = readRow(row);
  const from = read.integer("position");
  const whole = read.integer("count");
  const count = Math.min(whole, end - from);
  const content = read.bytesOrNull("content");
  return {
    stepId: read.text("step_id"),
    kind: read.text("kind") === "reply" ? "reply" : "request",
    from,
    count,
    content: content && count < whole ? Uint8Array.from(messagePrefix(content, count)) : content,
  };
}
