import type { StepContents, StepPart } from "@tollgate/core/store";
import { readRow } from "./row-reader.ts";

const stepParts: readonly StepPart[] = ["instructions", "request", "reply", "reasoning"];

/** The content of one Step, from the rows of its parts. */
export function contentsFromRows(rows: readonly unknown[]): StepContents {
  const parts = new Map(
    rows.map(readRow).map((part) => [part.text("kind"), part.bytesOrNull("content")]),
  );
  return {
    instructions: parts.get("instructions") ?? null,
    request: parts.get("request") ?? null,
    reply: parts.get("reply") ?? null,
    reasoning: parts.get("reasoning") ?? null,
    withheld: stepParts.filter((name) => parts.get(name) === null),
  };
}
