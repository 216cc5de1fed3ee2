import type { CompletionEvent } from "@tollgate/core/provider";
import type { Dialect } from "../src/dialect.ts";
import { EventStream } from "../src/event-stream.ts";

/** Reads the pieces of a stream's bytes, without a network. */
export type ReadBytes = (
  pieces: Iterable<Uint8Array>,
  eventBytes?: number,
) => readonly CompletionEvent[];

export function readBytesOf(dialect: Dialect): ReadBytes {
  return (pieces, eventBytes = 1_048_576) => {
    const answer = dialect.createReader({ seed: "seed", secrets: [] });
    const stream = new EventStream(answer, { eventBytes, secrets: [], dialect });
    const events: CompletionEvent[] = [];
    for (const piece of pieces) stream.feed(Buffer.from(piece), events);
    answer.finish(events);
    return events;
  };
}
