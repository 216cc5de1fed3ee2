import type { Step } from "@tollgate/core/store";
import type { AttemptMessage, ErrorRecord } from "@tollgate/store-engine";
import type { SqlDialect } from "../dialect.ts";
import type { SqlParameters } from "../statement.ts";
import { readRow } from "./row-reader.ts";

/** The columns of a provider's error text: content of its Session, erased with the transcript. */
export const errorColumns = [
  "organization_id",
  "step_id",
  "attempt",
  "session_id",
  "content",
  "salt",
  "commitment",
] as const;

/** The error texts of some Steps of one organization. */
export function errorsOf(dialect: SqlDialect): string {
  return `SELECT step_id, attempt, content FROM attempt_errors
    WHERE organization_id = :organization_id AND ${dialect.isOneOf("step_id", ":step_ids")}`;
}

/** An attempt's error text as the parameters of its row. */
export function errorToRow(error: ErrorRecord): SqlParameters {
  return {
    organization_id: error.organizationId,
    step_id: error.stepId,
    attempt: error.attempt,
    session_id: error.sessionId,
    content: error.content,
    salt: error.contentSalt,
    commitment: error.contentCommitment,
  };
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
