import {
  type HistoryRequest,
  type ReceivedAnswer,
  receive,
  receiveInBackground,
  referenceIn,
  requestOf,
  requestWithoutBody,
} from "./ask.ts";
import { at } from "./at.ts";
import type { Command } from "./command.ts";
import type { World } from "./world.ts";

/** The earlier results that later commands refer to. */
export interface HistoryState {
  readonly keys: { readonly id: string; readonly organizationId: string; secret: string }[];
  readonly conversations: { readonly sessionId: string; readonly messages: readonly unknown[] }[];
  readonly responses: string[];
  readonly streams: { readonly leave: () => void; readonly seen: () => ReceivedAnswer }[];
  last: HistoryRequest | null;
}

type CommandOf<Type extends Command["type"]> = Extract<Command, { type: Type }>;

const scripted = "test/tollgate/scripted";
const models = { ours: scripted, own: "own/tollgate/scripted", denied: "test/tollgate/denied" };
const tools = [{ type: "function", function: { name: "look", parameters: { type: "object" } } }];

export async function askChat(
  world: World,
  state: HistoryState,
  command: CommandOf<"chat">,
): Promise<unknown> {
  const conversation = command.after === null ? undefined : at(state.conversations, command.after);
  const messages = [...(conversation?.messages ?? []), userMessage(command.words)];
  const request = {
    secret: secretAt(state, command.key),
    path: "chat/completions",
    body: {
      model: models[command.model],
      messages,
      tools,
      stream: command.stream,
      ...(command.named && conversation ? { session_id: conversation.sessionId } : {}),
    },
  };
  return ask(world, state, request);
}

export async function askRespond(
  world: World,
  state: HistoryState,
  command: CommandOf<"respond">,
): Promise<unknown> {
  const previous = command.after === null ? undefined : at(state.responses, command.after);
  const request = {
    secret: secretAt(state, command.key),
    path: "responses",
    body: {
      model: scripted,
      input: wordsOf(command.words),
      instructions: "Be brief",
      stream: command.stream,
      store: command.store,
      ...(previous === undefined ? {} : { previous_response_id: previous }),
    },
  };
  return ask(world, state, request);
}

export async function askMessage(
  world: World,
  state: HistoryState,
  command: CommandOf<"message">,
): Promise<unknown> {
  const conversation = command.after === null ? undefined : at(state.conversations, command.after);
  const request = {
    secret: secretAt(state, command.key),
    path: "messages",
    body: {
      model: scripted,
      max_tokens: 64,
      system: "Be brief",
      messages: [...(conversation?.messages ?? []), userMessage(command.words)],
      tools: [{ name: "look", input_schema: { type: "object" } }],
      stream: command.stream,
    },
  };
  return ask(world, state, request);
}

export async function askEmbeddings(
  world: World,
  state: HistoryState,
  command: CommandOf<"embed">,
): Promise<unknown> {
  const request = {
    secret: secretAt(state, command.key),
    path: "embeddings",
    body: {
      model: models[command.model],
      input: Array(command.texts).fill(wordsOf(command.texts)),
      ...(command.base64 ? { encoding_format: "base64" } : {}),
    },
  };
  return ask(world, state, request);
}

export async function retry(world: World, state: HistoryState): Promise<unknown> {
  return state.last === null ? null : ask(world, state, state.last);
}

/** Sends a request, and remembers what later requests can continue. */
async function ask(
  world: World,
  state: HistoryState,
  request: HistoryRequest,
): Promise<ReceivedAnswer> {
  state.last = request;
  const answer = await world.drive(world.gateway().fetch(requestOf(request)).then(receive));
  const answerIds = referenceIn(answer);
  if (answerIds?.id.startsWith("resp_")) state.responses.push(answerIds.id);
  const { messages } = request.body;
  if (answerIds?.message && Array.isArray(messages))
    state.conversations.push({
      sessionId: answerIds.sessionId,
      messages: [...messages, answerIds.message],
    });
  return answer;
}

/** Four events of an answer, five seconds apart, until the client leaves. */
export async function beginSlowly(
  world: World,
  state: HistoryState,
  command: CommandOf<"chatSlowly">,
): Promise<void> {
  world.provider.reply({ text: ["One", " two", " three"], pace: "5s" });
  const client = new AbortController();
  const body = { model: scripted, messages: [userMessage(command.words)], stream: true };
  const request = { secret: secretAt(state, command.key), path: "chat/completions", body };
  const readSoFar = receiveInBackground(world.gateway().fetch(requestOf(request, client.signal)));
  state.streams.push({ leave: () => client.abort(), seen: readSoFar });
}

export async function useStoredResponse(
  world: World,
  state: HistoryState,
  { type, response, key }: CommandOf<"getResponse" | "listItems" | "deleteResponse">,
): Promise<unknown> {
  const id = at(state.responses, response) ?? "resp_unknown";
  const method = type === "deleteResponse" ? "DELETE" : "GET";
  const path = `responses/${id}${type === "listItems" ? "/input_items" : ""}`;
  const request = requestWithoutBody(method, path, secretAt(state, key));
  return world.drive(world.gateway().fetch(request).then(receive));
}

const secretAt = ({ keys }: HistoryState, number: number): string =>
  at(keys, number)?.secret ?? "none";
const wordsOf = (count: number): string => "word ".repeat(count).trim();
const userMessage = (words: number) => ({ role: "user", content: wordsOf(words) });
