import type { Step } from "@tollgate/core/store";
import type { ErrorRecord } from "@tollgate/store-engine";
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
  return `SELECT organization_id, step_id, attempt, content FROM attempt_errors
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

/** Adds the error texts in these rows to their Steps. */
export function withErrors(steps: readonly Step[], rows: readonly unknown[]): readonly Step[] {
  if (rows.length === 0) return steps;
  const messages = new Map(
    rows.map((row) => {
      const read = readRow(row);
      const [organizationId, id] = [read.text("organization_id"), read.text("step_id")];
      const content = read.bytesOrNull("content");
      const message = content && Buffer.from(content).toString();
      return [nameOf({ organizationId, id }, read.integer("attempt")), message];
    }),
  );
  return steps.map((step) => ({
    ...step,
    attempts: step.attempts.map((attempt) => {
      const { end } = attempt;
      const message = messages.get(nameOf(step, attempt.number)) ?? null;
      return end?.error
        ? { ...attempt, end: { ...end, error: { ...end.error, message } } }
        : attempt;
    }),
  }));
}

function nameOf({ organizationId, id }: Pick<Step, "organizationId" | "id">, attempt: number) {
  return JSON.stringify([organizationId, id, attempt]);
}
