import type { StateNeeds } from "../contracts/provider.ts";
import type { SessionMatch } from "../contracts/step-verbs.ts";
import type { Store } from "../contracts/store.ts";
import type { Owner } from "../domain/caller.ts";
import { type Message, type ProviderState, startsTurn } from "../domain/message.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import type { TargetRoute } from "../routing/route.ts";
import { countDropped, restoreState, unsealState } from "../sessions/provider-state.ts";
import { createStateSeal } from "../sessions/state-seal.ts";
import { chainOf, type TranscriptChain } from "../sessions/transcript-chain.ts";
import type { GatewayContext } from "./context.ts";
import type { GovernedCall, PreparedCall, PreparedRequest } from "./governed-call.ts";
import { orUnavailable } from "./store-calls.ts";

/**
 * Takes the system and developer messages at the start out of the conversation. The model still reads them first, and their
 * text is recorded with the Step. A conversation of nothing else keeps them, and isn't remembered.
 */
export function withInstructionsApart(prepared: PreparedRequest): PreparedRequest {
  const { transcript, instructions, storedMessages } = prepared;
  const count = transcript.findIndex(({ role }) => role !== "system" && role !== "developer");
  if (count === 0) return prepared;
  if (count < 0) return { ...prepared, known: null, remember: null };
  const leading = transcript.slice(0, count).map(({ content }) => plainText(content));
  return {
    ...prepared,
    transcript: transcript.slice(count),
    instructions: [...(instructions === null ? [] : [instructions]), ...leading].join("\n\n"),
    storedMessages: Math.max(0, storedMessages - count),
  };
}

function plainText(content: Message["content"]): string {
  if (typeof content !== "object") return content ?? "";
  return (content ?? []).map((part) => (part.type === "text" ? part.text : "")).join("\n\n");
}

/**
 * Opens the provider state that the client sent back if it is sealed for this key, and drops it otherwise. State from
 * stored responses is the gateway's own.
 */
export function withClientState(call: GovernedCall, prepared: PreparedRequest): PreparedCall {
  const seal = createStateSeal(call.caller);
  const { transcript, storedMessages } = prepared;
  const dropped = countDropped();
  const opened = unsealState(transcript, seal, dropped.note);
  const current =
    opened === transcript ? prepared : replacing(prepared, changes(transcript, opened));
  const restored = new Set(storedMessages === 0 ? null : transcript.slice(0, storedMessages));
  // Lists every member: spreading a call into another copies it several times over.
  return {
    requestId: call.requestId,
    caller: call.caller,
    endpoint: call.endpoint,
    stream: call.stream,
    repeatsAnswer: call.repeatsAnswer,
    model: call.model,
    dataClass: call.dataClass,
    sessionId: call.sessionId,
    turnId: call.turnId,
    claim: call.claim,
    isRetry: call.isRetry,
    droppedFields: call.droppedFields,
    signal: call.signal,
    prepare: call.prepare,
    request: current.request,
    embedding: current.embedding,
    transcript: current.transcript,
    instructions: current.instructions,
    referredClass: current.referredClass,
    previousSessionId: current.previousSessionId,
    storedMessages: current.storedMessages,
    known: current.known,
    remember: current.remember,
    conclude: current.conclude,
    state: { seal, dropped: dropped.counts(), restored },
  };
}

/** Maps each replaced message to its replacement. */
function changes(
  before: readonly Message[],
  after: readonly Message[],
): ReadonlyMap<Message, Message> {
  const replaced = new Map<Message, Message>();
  after.forEach((message, at) => {
    const original = before[at];
    if (original !== undefined && original !== message) replaced.set(original, message);
  });
  return replaced;
}

/**
 * Adds what the Session recorded: data classes for a policy that reads them, its id for a virtual model that chooses by it,
 * and provider state, which replaces the client's own copy. Most calls need neither, so nothing is read for them.
 */
export function withSession(
  context: GatewayContext,
  call: PreparedCall,
  { restore, by }: Pick<TargetRoute, "restore"> & Partial<Pick<TargetRoute, "by">>,
): PreparedCall | Promise<PreparedCall> {
  if (call.embedding !== undefined) return call;
  const first = firstToRestore(call, restore);
  return first < 0 && context.policy.sessions === "ignore" && by !== "session"
    ? call
    : findSession(context, call, first);
}

async function findSession(
  context: GatewayContext,
  call: PreparedCall,
  first: number,
): Promise<PreparedCall> {
  const { transcript, caller } = call;
  const chain = await chainOf(transcript, caller.salt, call.known?.chain);
  const { organizationId, userId, keyId, source } = caller;
  const { sessionId, turnId, previousSessionId } = call;
  const owner = { organizationId, userId, keyId };
  const found = await orUnavailable(
    context.store.sessions.find({
      owner,
      source,
      transcript: { sessionId, turnId, previousSessionId, chain: chain.values },
    }),
  );
  const continued = { chain, session: found };
  if (first < 0) return { ...call, state: { ...call.state, continued } };
  const from = chain.places[first] ?? 0;
  const recorded =
    found && found.commonLength > from
      ? await recordedMessages(context, owner, { ...found, from })
      : new Map<number, Message>();
  const replaced = restoreState(
    transcript.slice(first).map((message, at) => ({
      message,
      recorded: recorded.get(chain.places[first + at] ?? -1),
    })),
  );
  const left = [...replaced].flatMap(([original, kept]) =>
    bringsState(original) && !call.state.restored.has(original) ? [] : kept,
  );
  const restored = new Set([...call.state.restored, ...left]);
  return { ...replacing(call, replaced), state: { ...call.state, restored, continued } };
}

/**
 * The index of the first message whose recorded state is needed; -1 for none. Stored responses include the state of their
 * answers, but their input is as the client sent it, so messages without state may need it too.
 */
function firstToRestore(
  { transcript, storedMessages }: PreparedCall,
  restore: StateNeeds["restore"],
): number {
  if (restore === "none" || !transcript.some(({ role }) => role === "assistant")) return -1;
  const afterLastUser = transcript.findLastIndex(startsTurn) + 1;
  const brought = transcript.findIndex(
    (message, at) => at >= storedMessages && bringsState(message),
  );
  const inTurn = brought < 0 ? afterLastUser : Math.min(brought, afterLastUser);
  const from = restore === "history" ? 0 : inTurn;
  const hasIssued = transcript.slice(0, storedMessages).some(bringsState);
  return transcript.findIndex(
    (message, at) =>
      at >= from &&
      message.role === "assistant" &&
      (at >= storedMessages || (hasIssued && !bringsState(message))),
  );
}

/**
 * Whether the client's copy of a message contains provider state. Libraries that know only some of its members return it
 * changed, and providers reject changed state. The recorded state replaces it.
 */
function bringsState(message: Message): boolean {
  const calls = message.role === "assistant" ? message.tool_calls : undefined;
  return isIssued(message) || (calls?.some(isIssued) ?? false);
}

function isIssued({ state }: { readonly state?: ProviderState }): boolean {
  return state !== undefined && state.from !== null;
}

/** The recorded messages that the request repeats, from a position on. */
async function recordedMessages(
  context: GatewayContext,
  { organizationId }: Owner,
  { sessionId, commonLength, from }: SessionMatch & { readonly from: number },
): Promise<ReadonlyMap<number, Message>> {
  const parts = await orUnavailable(
    context.store.sessions.transcript(organizationId, sessionId, from),
  );
  const recorded = new Map<number, Message>();
  for (const part of parts ?? []) {
    if (part.content === null) continue;
    const messages: readonly Message[] = JSON.parse(Buffer.from(part.content).toString());
    messages.forEach((message, at) => {
      if (part.from + at < commonLength) recorded.set(part.from + at, message);
    });
  }
  return recorded;
}

/** Replaces messages both in the request and in the transcript. */
function replacing<Call extends PreparedRequest>(
  call: Call,
  replaced: ReadonlyMap<Message, Message>,
): Call {
  if (replaced.size === 0) return call;
  const current = (message: Message): Message => replaced.get(message) ?? message;
  const { request, transcript } = call;
  return {
    ...call,
    request: { ...request, messages: request.messages.map(current) },
    transcript: transcript.map(current),
  };
}

/** Checks that the named Session and Turn belong to the caller. Opening the Step checks it again. */
export async function requireOwned(
  store: Store,
  { caller, sessionId, turnId }: GovernedCall,
): Promise<void> {
  if (sessionId !== null && !(await orUnavailable(store.sessions.isOwned(caller, sessionId))))
    throw notOwned("session_not_found");
  if (turnId !== null && (await orUnavailable(store.sessions.findByTurn(caller, turnId))) === null)
    throw notOwned("turn_not_found");
}

/** The same error whether or not the id exists elsewhere. */
export function notOwned(code: "session_not_found" | "turn_not_found"): GatewayError {
  return code === "session_not_found"
    ? new GatewayError(code, "Session not found.", { param: "session_id" })
    : new GatewayError(code, "Turn not found.", { param: "turn_id" });
}

const retriedWithinMs = 60_000;
const retriedAmong = 100;

/**
 * The Step that an SDK's retry probably repeats: the key's latest one of the last minute, among its latest 100, with the same
 * endpoint, model and messages. Only a hint, so it doesn't matter if the store fails.
 */
export async function retriedStep(
  { store, clock }: GatewayContext,
  { caller, endpoint, model }: PreparedCall,
  { values }: TranscriptChain,
): Promise<string | null> {
  const { organizationId, keyId } = caller;
  const query = { organizationId, keyId: [keyId], from: clock.now() - retriedWithinMs };
  const head = values.subarray(-32).toString("hex");
  try {
    const { data } = await store.steps.list(query, { cursor: null, limit: retriedAmong });
    const same = data.find(
      (step) => step.head === head && step.endpoint === endpoint && step.requestedModel === model,
    );
    return same?.id ?? null;
  } catch {
    return null;
  }
}
