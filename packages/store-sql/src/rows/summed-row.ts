import type { SummedStep } from "@tollgate/core/store";
import { readRow } from "./row-reader.ts";
import { outcomeOf } from "./step-row.ts";

/** The columns of a Step that a summary reads. */
export const summedColumns = [
  "organization_id",
  "id",
  "user_id",
  "key_id",
  "key_label",
  "session_id",
  "source",
  "data_class",
  "opened_at",
  "outcome",
  "gateway",
  "vendor",
  "model",
  "connection",
  "attempt",
  "attempt_end",
  "earlier_attempts",
] as const;

/** The fields that a summary reads, from a row of `summedColumns`. */
export function summedFromRow(row: unknown): SummedStep {
  const read = readRow(row);
  const outcome = read.text("outcome");
  const running = {
    number: read.integer("attempt"),
    gateway: read.text("gateway"),
    vendor: read.text("vendor"),
    model: read.text("model"),
    connection: ownershipOf(read.text("connection")),
    end: read.jsonOrNull<SummedStep["attempts"][number]["end"]>("attempt_end"),
  };
  return {
    organizationId: read.text("organization_id"),
    id: read.text("id"),
    userId: read.text("user_id"),
    keyId: read.text("key_id"),
    keyLabel: read.text("key_label"),
    sessionId: read.text("session_id"),
    source: read.text("source"),
    dataClass: read.text("data_class"),
    openedAt: read.integer("opened_at"),
    outcome: outcome === "open" ? null : outcomeOf(outcome),
    attempts: [...(read.jsonOrNull<SummedStep["attempts"]>("earlier_attempts") ?? []), running],
  };
}

function ownershipOf(text: string): "platform" | "customer" {
  if (text === "platform" || text === "customer") return text;
  throw new TypeError("column connection has an unknown owner");
}
