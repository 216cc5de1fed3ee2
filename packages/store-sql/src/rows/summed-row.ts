import { connectionOwnerships, type SummedStep, type UnfoldedStep } from "@tollgate/core/store";
import type { SqlDialect } from "../dialect.ts";
import { readRow } from "./row-reader.ts";
import { outcomeFrom } from "./step-row.ts";

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
  const running = {
    number: read.integer("attempt"),
    gateway: read.text("gateway"),
    vendor: read.text("vendor"),
    model: read.text("model"),
    connection: read.oneOf("connection", connectionOwnerships),
    end: read.jsonOrNull<SummedStep["attempts"][number]["end"]>("attempt_end"),
  };
  return {
    organizationId: read.text("organization_id"),
    id: read.text("id"),
    userId: read.text("user_id"),
    keyId: read.text("key_id"),
    keyLabel: read.text("key_label"),
    sessionId: read.textOrNull("session_id"),
    source: read.text("source"),
    dataClass: read.text("data_class"),
    openedAt: read.integer("opened_at"),
    outcome: outcomeFrom(read),
    attempts: [...(read.jsonOrNull<SummedStep["attempts"]>("earlier_attempts") ?? []), running],
  };
}

/** The columns that Steps of one path have in common, in the order of `UnfoldedPath`. */
const pathColumns = [
  ...(["user_id", "key_id", "key_label", "source", "data_class", "outcome"] as const),
  ...(["gateway", "vendor", "model", "connection"] as const),
] as const;

/**
 * The columns of a Step that a fold reads. Few columns and few values per page: most of the time that a fold takes is spent on
 * them.
 */
export function unfoldedColumns(dialect: SqlDialect): readonly string[] {
  return [
    "opened_at",
    `${dialect.jsonArray(pathColumns)} AS path`,
    ...(["attempt", "attempt_end", "earlier_attempts"] as const),
  ];
}

/** The values of each path, read once per page. */
export type UnfoldedPaths = Map<string, UnfoldedPath>;

interface UnfoldedPath {
  readonly step: Omit<UnfoldedStep, "organizationId" | "openedAt" | "attempts">;
  readonly attempt: Omit<UnfoldedStep["attempts"][number], "number" | "end" | "corrections">;
}

/** The fields that a fold reads, from a row of `unfoldedColumns`. */
export function unfoldedFromRow(
  row: unknown,
  organizationId: string,
  paths: UnfoldedPaths,
): UnfoldedStep {
  const read = readRow(row);
  const text = read.text("path");
  const path = paths.get(text) ?? pathFrom(text);
  paths.set(text, path);
  const running = {
    ...path.attempt,
    number: read.integer("attempt"),
    end: read.jsonOrNull<UnfoldedStep["attempts"][number]["end"]>("attempt_end"),
  };
  const earlier = read.jsonOrNull<UnfoldedStep["attempts"]>("earlier_attempts");
  return {
    ...path.step,
    organizationId,
    openedAt: read.integer("opened_at"),
    attempts: earlier === null ? [running] : [...earlier, running],
  };
}

function pathFrom(text: string): UnfoldedPath {
  const values: readonly unknown[] = JSON.parse(text);
  const read = readRow(Object.fromEntries(pathColumns.map((column, at) => [column, values[at]])));
  return {
    step: {
      userId: read.text("user_id"),
      keyId: read.text("key_id"),
      keyLabel: read.text("key_label"),
      source: read.text("source"),
      dataClass: read.text("data_class"),
      outcome: outcomeFrom(read),
    },
    attempt: {
      gateway: read.text("gateway"),
      vendor: read.text("vendor"),
      model: read.text("model"),
      connection: read.oneOf("connection", connectionOwnerships),
    },
  };
}
