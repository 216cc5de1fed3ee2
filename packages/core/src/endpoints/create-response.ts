import type { ResponseDraft } from "../contracts/step-verbs.ts";
import type { Caller } from "../domain/caller.ts";
import type { Completion } from "../domain/completion.ts";
import type { Message } from "../domain/message.ts";
import type { Answer } from "../http/answer.ts";
import type { GatewayRequest } from "../http/gateway-request.ts";
import { isLarge, otherWork } from "../kernel/other-work.ts";
import type {
  AnswerHead,
  GovernedCall,
  PreparedRequest,
  SettledAnswer,
} from "../pipeline/governed-call.ts";
import type { Line } from "../pipeline/line.ts";
import { createEventWriter } from "../wire/responses/events.ts";
import { storedInput } from "../wire/responses/input-items.ts";
import { responseId } from "../wire/responses/item-ids.ts";
import { outputItems } from "../wire/responses/output-items.ts";
import { parseResponse, type ResponseCall } from "../wire/responses/parse.ts";
import { type ResponseHead, responseBody } from "../wire/responses/response-object.ts";
import { toMessages } from "../wire/responses/to-messages.ts";
import { answerGoverned, type EndpointContext } from "./endpoint.ts";
import { presentBody } from "./present-body.ts";
import { presentStream, type StreamWriter } from "./present-stream.ts";
import { type Conversation, findConversation } from "./response-conversation.ts";

/** POST /v1/responses (section 4.2): translated in at the front, and out at the back, of the one line. */
export function createResponse(context: EndpointContext, request: GatewayRequest): Promise<Answer> {
  const { line } = context;
  return answerGoverned(context, request, {
    read: (body) => parseResponse(body, line.limits, line.toolOutputs),
    callOf: (caller, call) => callOf(line, request, { caller, call }),
    present(answer, call) {
      const head = headOf(answer, call);
      return call.stream
        ? presentStream(context, answer, eventWriter(head, call))
        : presentBody(line, answer, (settled) => bodyOf(head, call, settled));
    },
  });
}

function callOf(
  line: Line,
  { headers, signal }: GatewayRequest,
  { caller, call }: { readonly caller: Caller; readonly call: ResponseCall },
): GovernedCall {
  return {
    caller,
    endpoint: "responses",
    stream: call.stream,
    model: call.model,
    dataClass: headers.get(line.headerNames.sent.dataSensitivity),
    sessionId: call.sessionId,
    turnId: call.turnId,
    droppedFields: call.droppedFields,
    signal,
    prepare: async () =>
      prepared(line, { caller, call, conversation: await findConversation(line, caller, call) }),
  };
}

interface Exchange {
  readonly caller: Caller;
  readonly call: ResponseCall;
  readonly conversation: Conversation;
}

/** Instructions come first for the model, and are no part of the conversation. */
function prepared(line: Line, exchange: Exchange): PreparedRequest {
  const { call, conversation } = exchange;
  const transcript = [...conversation.history, ...conversation.messages];
  const { instructions } = call;
  const messages =
    instructions === null
      ? transcript
      : [{ role: "system" as const, content: instructions }, ...transcript];
  return {
    request: { ...call.options, messages },
    transcript,
    instructions,
    referredClass: conversation.dataClass,
    alsoConsider: conversation.sessionId,
    storedMessages: conversation.history.length,
    conclude: async (head, answer, withState) => {
      const output = outputItems(answer.completion, responseId(head.stepId));
      const reply = withState(toMessages(output.filter((item) => item.type !== "reasoning")));
      return {
        reply,
        response: call.store ? await draft(line, exchange, { head, answer, reply }) : null,
      };
    },
  };
}

async function draft(
  line: Line,
  { caller, call, conversation }: Exchange,
  {
    head,
    answer,
    reply,
  }: {
    readonly head: AnswerHead;
    readonly answer: SettledAnswer;
    readonly reply: readonly Message[];
  },
): Promise<ResponseDraft> {
  const id = responseId(head.stepId);
  const { organizationId, userId, keyId } = caller;
  return {
    id,
    organizationId,
    userId,
    keyId,
    stepId: head.stepId,
    sessionId: head.sessionId,
    dataClass: head.dataClass,
    previousResponseId: call.previousResponseId,
    createdAt: head.openedAt,
    expiresAt: head.openedAt + line.retention.responses,
    body: await bytesOf(() => bodyOf(headOf(head, call), call, answer)),
    input: await bytesOf(() => JSON.stringify(storedInput(conversation.items, id))),
    messages: await bytesOf(() => JSON.stringify([...conversation.messages, ...reply])),
    inherited: await bytesOf(() => JSON.stringify(conversation.history)),
  };
}

function headOf(answer: AnswerHead, call: ResponseCall): ResponseHead {
  return {
    id: responseId(answer.stepId),
    createdAt: answer.openedAt,
    model: call.model,
    sessionId: answer.sessionId,
    turnId: answer.turnId,
    previousResponseId: call.previousResponseId,
    store: call.store,
    echo: call.echo,
    namespaces: call.namespaces,
  };
}

function bodyOf(head: ResponseHead, call: ResponseCall, settled: SettledAnswer): string {
  const { usage, finishReason, settledAt } = settled;
  return responseBody(head, shown(call, settled), usage, finishReason, settledAt);
}

/** The answer with its state sealed in it, where the client asked for that. */
function shown({ includesState }: ResponseCall, settled: SettledAnswer): Completion {
  const sealedState = includesState ? settled.sealedState() : null;
  return sealedState === null ? settled.completion : { ...settled.completion, sealedState };
}

function eventWriter(head: ResponseHead, call: ResponseCall): StreamWriter {
  const { write, finish, fail } = createEventWriter(head);
  return {
    write,
    finish: (settled) =>
      finish(shown(call, settled), settled.usage, settled.finishReason, settled.settledAt),
    fail,
  };
}

async function bytesOf(write: () => string): Promise<Buffer> {
  const bytes = Buffer.from(write());
  if (isLarge(bytes.length)) await otherWork();
  return bytes;
}
