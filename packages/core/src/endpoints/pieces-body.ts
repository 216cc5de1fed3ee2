import { type Pieces, piecesOf } from "../http/event-stream.ts";
import type { GatewayResponse, StreamBody, TextSink } from "../http/gateway-response.ts";
import { maxKeptBytes } from "../idempotency/claim.ts";
import { yieldToEventLoop } from "../kernel/event-loop.ts";
import { endsInHalf } from "../kernel/surrogates.ts";
import type { Ticket } from "../limits/admission.ts";

/** The body of an answer with a text that may be long. See `bodyOfPieces`. */
export function bodyOfText(text: string, ticket: Ticket): GatewayResponse["body"] {
  return bodyOfPieces(slicesOf(text), ticket);
}

const sliceLength = 65_536;

/** Splits a text into slices, but never within a character. */
function* slicesOf(text: string): Generator<string> {
  for (let from = 0; from < text.length; ) {
    const slice = text.slice(from, from + sliceLength);
    const rest = endsInHalf(slice) ? text.charAt(from + sliceLength) : "";
    yield slice + rest;
    from += slice.length + rest.length;
  }
}

/**
 * Joins the pieces into one text if it is short enough to be kept for repeats. Otherwise the body writes them at the client's
 * speed, and keeps their room in the process until it has written them or the client leaves.
 */
export function bodyOfPieces(all: Iterable<string>, ticket: Ticket): GatewayResponse["body"] {
  const pieces = piecesOf(all);
  const texts: string[] = [];
  for (let length = 0; !pieces.isOver(); ) {
    const text = pieces.take();
    texts.push(text);
    length += text.length;
    if (length > maxKeptBytes) return new PiecesBody(texts, pieces, ticket.handOver());
  }
  return texts.join("");
}

/** Frees the room of bodies that are never read, once they are garbage-collected. */
const unread = new FinalizationRegistry<Ticket>((ticket) => ticket.release());

class PiecesBody implements StreamBody {
  readonly #first: string[];
  readonly #rest: Pieces;
  readonly #ticket: Ticket;
  #isLeft = false;

  constructor(first: string[], rest: Pieces, ticket: Ticket) {
    this.#first = first;
    this.#rest = rest;
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
    while (!this.#isLeft && (this.#first.length > 0 || !this.#rest.isOver())) {
      await sink.write(this.#first.shift() ?? this.#rest.take());
      // If the socket accepts everything, `write` resolves without a turn of the event loop.
      await yieldToEventLoop();
    }
    if (this.#isLeft) return;
    this.#ticket.release();
    sink.end();
  }
}
