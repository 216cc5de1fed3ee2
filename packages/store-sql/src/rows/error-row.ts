import type { Step } from "@tollgate/core/store";
import type { AttemptMessage, ErrorRecord } from "@tollgate/store-engine";
import type { SqlDialect } from "../dialect.ts";
import { describeRow } from "./describe-row.ts";
import { readRow } from "./row-reader.ts";

/** The rows of providers' error texts. They are content of their Session, so they are erased with its transcript. */
export const errorRows = describeRow<ErrorRecord>(
  {
    organizationId: "text",
    stepId: "text",
    attempt: "integer",
    sessionId: "text",
    content: "bytesOrNull",
    contentSalt: "bytes",
    contentCommitment: "bytes",
  },
  { contentSalt: "salt", contentCommitment: "commitment" },
);

/** The error texts of some Steps of one organization. */
export function errorsOf(dialect: SqlDialect): string {
  return `SELECT step_id, attempt, content FROM attempt_errors
    WHERE organization_id = :organization_id AND ${dialect.isOneOf("step_id", ":step_ids")}`;
}

/** Whether one of the Step's attempts has an error text. */
export function hasError({ attempts }: Step): boolean {
  return attempts.some(({ end }) => end?.error);
}

/** The error text in a row. */
export function messageFromRow(row: unknown): AttemptMessage {
  const read = readRow(row);
  const content = read.bytesOrNull("content");
  return {
    attempt: read.integer("attempt"),
    message: content && Buffer.from(content).toString(),
  };
}
