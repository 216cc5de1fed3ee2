import type { Caller } from "../domain/caller.ts";
import type { StoredResponse } from "../domain/stored-response.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import { createLeaf } from "../evidence/leaves.ts";
import type { GatewayRequest } from "../http/gateway-request.ts";
import type { GatewayResponse } from "../http/gateway-response.ts";
import { queryOf } from "../http/path-after-v1.ts";
import { isLarge, yieldToEventLoop } from "../kernel/event-loop.ts";
import type { Ticket } from "../limits/admission.ts";
import { orUnavailable } from "../pipeline/store-calls.ts";
import { listInputItems as listItems } from "../wire/responses/input-items.ts";
import { isResponseId } from "../wire/responses/item-ids.ts";
import { answerCaller, jsonHeaders, type RequestScope } from "./endpoint.ts";
import { bodyOfText } from "./pieces-body.ts";

/** GET /v1/responses/{response_id} (section 4.3): the same JSON as when it was created. */
export function getResponse(
  scope: RequestScope,
  request: GatewayRequest,
  id: string,
): Promise<GatewayResponse> {
  return answerCaller(scope, request, async (caller, ticket) => {
    const response = await ownResponse(scope, caller, id);
    refuseResuming(queryOf(request.url));
    await takeRoom(response.body, ticket);
    const body = Buffer.from(response.body).toString();
    // A damaged record must fail instead of looking like an answer.
    JSON.parse(body);
    return { status: 200, headers: jsonHeaders(), body: bodyOfText(body, ticket) };
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
    const response = await ownResponse(scope, caller, id);
    await takeRoom(response.input, ticket);
    const items = JSON.parse(Buffer.from(response.input).toString());
    const body = listItems(items, queryOf(request.url));
    return { status: 200, headers: jsonHeaders(), body: bodyOfText(body, ticket) };
  });
}

/** Takes room for bytes that the caller parses next. If they are many, lets other work run first. */
async function takeRoom({ length }: Uint8Array, ticket: Ticket): Promise<void> {
  ticket.grow(length);
  if (isLarge(length)) await yieldToEventLoop();
}

/** POST …/cancel and …/compact: Tollgate offers neither background responses nor compaction (section 4.6). */
export function notEmulated(
  scope: RequestScope,
  request: GatewayRequest,
): Promise<GatewayResponse> {
  return answerCaller(scope, request, async () => {
    throw new GatewayError(
      "unsupported_parameter",
      "Cancelling and compacting responses isn't supported.",
    );
  });
}

/** @throws GatewayError `response_not_found` unless it exists and belongs to the caller */
async function ownResponse(
  { context }: RequestScope,
  caller: Caller,
  id: string,
): Promise<StoredResponse> {
  const response = isResponseId(id)
    ? await orUnavailable(context.store.responses.get(caller, id, context.clock.now()))
    : null;
  if (response) return response;
  throw notFound();
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
