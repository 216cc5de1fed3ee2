import { type Pieces, piecesOf } from "../http/event-stream.ts";
import type { GatewayRequest } from "../http/gateway-request.ts";
import type { GatewayResponse, StreamBody, TextSink } from "../http/gateway-response.ts";
import { maxKeptBytes } from "../idempotency/claim.ts";
import { yieldToEventLoop } from "../kernel/event-loop.ts";
import type { Ticket } from "../limits/admission.ts";
import type { GovernedCall } from "../pipeline/governed-call.ts";
import {
  type EmbeddingsCall,
  embeddingLimits,
  embeddingsBody,
  parseEmbeddings,
  vectorBytes,
} from "../wire/embeddings/embeddings.ts";
import { answerGoverned, type ClaimedRequest, commonOf, type RequestScope } from "./endpoint.ts";
import { presentBody } from "./present-answer.ts";

/** POST /v1/embeddings: a governed call whose Step has no Session, Turn or step number (decision 0039). */
export function createEmbeddings(
  scope: RequestScope,
  request: GatewayRequest,
): Promise<GatewayResponse> {
  const { context } = scope;
  const { limits } = context;
  return answerGoverned<never, EmbeddingsCall>(scope, request, {
    conversations: null,
    limits: embeddingLimits(limits),
    read: (body) => parseEmbeddings(body, limits),
    // A small request can have an answer of many megabytes. `upstreamBytes` bounds every answer.
    answerBytes: (call) => Math.min(vectorBytes(call.request), limits.upstreamBytes),
    callOf: (caller, read, claim) => callOf(scope, request, { caller, read, claim }),
    present: (answer, call, ticket) =>
      presentBody(context, answer, ({ completion: { embeddings = [] }, usage }) =>
        bodyOfPieces(embeddingsBody(call, embeddings, usage), ticket),
      ),
  });
}

function callOf(
  scope: RequestScope,
  request: GatewayRequest,
  { caller, read, claim }: ClaimedRequest<never, EmbeddingsCall>,
): GovernedCall {
  const { model, request: embedding } = read.call;
  const call = { model, stream: false, sessionId: null, turnId: null, droppedFields: {} };
  return {
    ...commonOf(scope, request, { caller, read: { ...read, call }, claim }),
    endpoint: "embeddings",
    repeatsAnswer: true,
    prepare: () => ({
      request: { messages: [] },
      embedding,
      transcript: [],
      instructions: null,
      referredClass: null,
      previousSessionId: null,
      storedMessages: 0,
      known: null,
      remember: null,
      conclude: () => ({ reply: [], response: null }),
    }),
  };
}

/**
 * Joins pieces to one text if it is short enough to keep. Otherwise they are written at the client's speed, and take their
 * room until then.
 */
function bodyOfPieces(all: Iterable<string>, ticket: Ticket): GatewayResponse["body"] {
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

/** Frees the room of bodies that nobody reads, once they are collected. */
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
      // A socket that takes everything resolves without a turn of the event loop.
      await yieldToEventLoop();
    }
    if (this.#isLeft) return;
    this.#ticket.release();
    sink.end();
  }
}
