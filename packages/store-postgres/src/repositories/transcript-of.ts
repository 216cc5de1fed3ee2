import { messagePrefix, type TranscriptPart } from "@tollgate/core/store";
import { lineageOf, type SessionState } from "@tollgate/store-engine";
import { readRow, transcriptStatements } from "@tollgate/store-sql";
import type { Connection } from "../database/connection.ts";
import { askFetching } from "../driver/fetched-view.ts";

/** What the Steps of a Session, and of those it branched from, appended. */
export async function transcriptOf(
  connection: Connection,
  session: SessionState,
  from: number,
): Promise<readonly TranscriptPart[]> {
  const parts: TranscriptPart[] = [];
  const stretches = await askFetching(connection, (view) => lineageOf(view, session));
  for (const stretch of stretches) {
    const { organizationId, id } = stretch.session;
    const rows = await connection.all(transcriptStatements.parts, {
      organization_id: organizationId,
      session_id: id,
      end: stretch.end,
      from,
    });
    parts.push(...rows.map((row) => partUpTo(row, stretch.end)));
  }
  return parts;
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
