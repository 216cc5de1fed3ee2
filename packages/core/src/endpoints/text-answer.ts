import { type Pieces, piecesOf } from "../http/event-stream.ts";
import type { GatewayResponse, StreamBody, TextSink } from "../http/gateway-response.ts";
import { maxKeptBytes } from "../idempotency/claim.ts";
import { yieldToEventLoop } from "../kernel/event-loop.ts";
import { endsInHalf } from "../kernel/surrogates.ts";
import type { Ticket } from "../limits/admission.ts";

/** The text of an answer. If it is too long to be kept for repeats, it may be pieces, which are created when read. */
export type AnswerText = string | Iterable<string>;

/** The characters of a text that is written at once. Longer ones are written at the client's speed. */
const sliceLength = 65_536;

/**
 * Answers with a text. If it is long, the body writes it at the client's speed, and keeps its room in the process until it has
 * written it or the client leaves.
 */
export function textAnswer(
  headers: Record<string, string>,
  text: AnswerText,
  ticket: Ticket,
): GatewayResponse {
  if (typeof text !== "string")
    return { status: 200, headers, body: new PiecesBody(text, null, ticket.handOver()) };
  if (text.length <= sliceLength) return { status: 200, headers, body: text };
  const bytes = Buffer.byteLength(text);
  const body = new PiecesBody(slicesOf(text), bytes, ticket.handOver(bytes));
  return { status: 200, headers, body };
}

/** Splits a text into slices, but never within a character. */
function* slicesOf(text: string): Generator<string> {
  for (let from = 0; from < text.length; ) {
    const slice = text.slice(from, from + sliceLength);
    const rest = endsInHalf(slice) ? text.charAt(from + sliceLength) : "";
    yield slice + rest;
    from += slice.length + rest.length;
  }
}

/** Joins pieces into one text if it is short enough to be kept for repeats. */
export function joinIfShort(all: Iterable<string>): AnswerText {
  const pieces = piecesOf(all);
  const texts: string[] = [];
  for (let length = 0; !pieces.isOver(); ) {
    const text = pieces.take();
    texts.push(text);
    length += text.length;
    if (length > maxKeptBytes) return continued(texts, pieces);
  }
  return texts.join("");
}

function* continued(texts: string[], rest: Pieces): Generator<string> {
  for (let text = texts.shift(); text !== undefined; text = texts.shift()) yield text;
  while (!rest.isOver()) yield rest.take();
}

/** Frees the room of bodies that are never read, once they are garbage-collected. */
const unread = new FinalizationRegistry<Ticket>((ticket) => ticket.release());

class PiecesBody implements StreamBody {
  readonly byteLength: number | null;
  readonly #pieces: Pieces;
  readonly #ticket: Ticket;
  #isLeft = false;

  constructor(pieces: Iterable<string>, byteLength: number | null, ticket: Ticket) {
    this.byteLength = byteLength;
    this.#pieces = piecesOf(pieces);
    this.#ticket = ticket;
    unread.register(this, ticket);
  }

  start(sink: TextSink): void {
    void this.#write(sink).catch((thrown: unknown) => {
      this.leave();
      sink.fail(thrown);
    });
  }

  leave(): void {
    this.#isLeft = true;
    this.#ticket.release();
  }

  async #write(sink: TextSink): Promise<void> {
    while (!this.#isLeft && !this.#pieces.isOver()) {
      const text = this.#pieces.take();
      if (text !== "") await sink.write(text);
      // If the socket accepts everything, `write` resolves without a turn of the event loop.
      await yieldToEventLoop();
    }
    if (this.#isLeft) return;
    this.#ticket.release();
    sink.end();
  }
}
