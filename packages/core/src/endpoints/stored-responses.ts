import type { Caller } from "../domain/caller.ts";
import type { StoredResponse } from "../domain/stored-response.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import { createLeaf } from "../evidence/leaves.ts";
import type { GatewayRequest } from "../http/gateway-request.ts";
import type { GatewayResponse } from "../http/gateway-response.ts";
import { queryOf } from "../http/path-after-v1.ts";
import { unlessAborted } from "../kernel/bounded-wait.ts";
import { isLarge, yieldToEventLoop } from "../kernel/event-loop.ts";
import type { Ticket } from "../limits/admission.ts";
import { orUnavailable, readContent } from "../pipeline/store-calls.ts";
import { listInputItems as listItems } from "../wire/responses/input-items.ts";
import { isResponseId } from "../wire/responses/item-ids.ts";
import { answerCaller, jsonHeaders, type RequestScope } from "./endpoint.ts";
import { textAnswer } from "./text-answer.ts";

/** GET /v1/responses/{response_id} (section 4.3): the same JSON as when it was created. */
export function getResponse(
  scope: RequestScope,
  request: GatewayRequest,
  id: string,
): Promise<GatewayResponse> {
  return answerCaller(scope, request, async (caller, ticket) => {
    const { body: bytes } = await readOwn(scope, request, { caller, ticket, id });
    refuseResuming(queryOf(request.url));
    if (isLarge(bytes.length)) await yieldToEventLoop();
    const body = textOf(bytes);
    // A damaged record must fail instead of looking like an answer.
    JSON.parse(body);
    return textAnswer(jsonHeaders(), body, ticket);
  });
}

/** DELETE /v1/responses/{response_id} (section 4.4): deletes the stored response. Its evidence remains. */
export function deleteResponse(
  scope: RequestScope,
  request: GatewayRequest,
  id: string,
): Promise<GatewayResponse> {
  const { context } = scope;
  return answerCaller(scope, request, async ({ organizationId, userId, keyId }) => {
    const at = context.clock.now();
    const head = { id: context.ids.uuid(), organizationId, kind: "response.deleted" as const, at };
    const deletion = {
      owner: { organizationId, userId, keyId },
      id,
      at,
      leaf: createLeaf(head, { key: keyId, response: id, user: userId }),
    };
    if (!isResponseId(id) || !(await orUnavailable(context.store.responses.delete(deletion))))
      throw notFound();
    return {
      status: 200,
      headers: jsonHeaders(),
      body: JSON.stringify({ id, object: "response", deleted: true }),
    };
  });
}

/** GET /v1/responses/{response_id}/input_items (section 4.5): its own input, in pages. */
export function listInputItems(
  scope: RequestScope,
  request: GatewayRequest,
  id: string,
): Promise<GatewayResponse> {
  return answerCaller(scope, request, async (caller, ticket) => {
    const { input: bytes } = await readOwn(scope, request, { caller, ticket, id });
    if (isLarge(bytes.length)) await yieldToEventLoop();
    const items = JSON.parse(textOf(bytes));
    const body = listItems(items, queryOf(request.url));
    return textAnswer(jsonHeaders(), body, ticket);
  });
}

/** POST …/cancel and …/compact: Tollgate offers neither background responses nor compaction (section 4.6). */
export function notEmulated(
  scope: RequestScope,
  request: GatewayRequest,
): Promise<GatewayResponse> {
  return answerCaller(scope, request, async () => {
    throw new GatewayError("unsupported_parameter", "Responses can't be cancelled or compacted.");
  });
}

/**
 * Reads a stored response in its own turn, which ends with the ticket. Takes room for its body and its input, because the
 * store reads them together.
 * @throws GatewayError `response_not_found` unless it exists and belongs to the caller
 */
async function readOwn(
  { context }: RequestScope,
  { signal }: GatewayRequest,
  { caller, ticket, id }: { readonly caller: Caller; readonly ticket: Ticket; readonly id: string },
): Promise<StoredResponse> {
  if (!isResponseId(id)) throw notFound();
  const turn = ticket.turn("reads");
  if (turn !== null) await unlessAborted(signal, turn);
  const response = await readContent(() =>
    context.store.responses.get(caller, id, context.clock.now()),
  );
  if (!response) throw notFound();
  ticket.grow(response.body.length + response.input.length);
  return response;
}

/** Doesn't copy the bytes. */
function textOf({ buffer, byteOffset, byteLength }: Uint8Array): string {
  return Buffer.from(buffer, byteOffset, byteLength).toString();
}

/** Only background responses can be resumed, and Tollgate doesn't offer those. */
function refuseResuming(query: URLSearchParams): void {
  const param =
    query.get("stream") === "true"
      ? "stream"
      : query.has("starting_after")
        ? "starting_after"
        : null;
  if (param === null) return;
  throw new GatewayError("unsupported_parameter", "A stored response can't be streamed.", {
    param,
  });
}

/** The same error for another caller's, deleted, expired and unknown ids. */
function notFound(): GatewayError {
  return new GatewayError("response_not_found", "Response not found.");
}
