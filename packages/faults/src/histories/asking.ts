import {
  type Asked,
  requestOf,
  requestWithoutBody,
  type Seen,
  seen,
  seenWhile,
  toldBy,
} from "./ask.ts";
import { at } from "./at.ts";
import type { Command } from "./command.ts";
import type { World } from "./world.ts";

/** What later commands refer to. */
export interface Known {
  readonly keys: { readonly id: string; readonly organizationId: string; secret: string }[];
  readonly conversations: { readonly sessionId: string; readonly messages: readonly unknown[] }[];
  readonly responses: string[];
  readonly streams: { readonly leave: () => void; readonly seen: () => Seen }[];
  last: Asked | null;
}

type Of<Type extends Command["type"]> = Extract<Command, { type: Type }>;

const scripted = "test/tollgate/scripted";
const models = { ours: scripted, own: "own/tollgate/scripted", denied: "test/tollgate/denied" };
const tools = [{ type: "function", function: { name: "look", parameters: { type: "object" } } }];

export async function askChat(world: World, known: Known, command: Of<"chat">): Promise<unknown> {
  const conversation = command.after === null ? undefined : at(known.conversations, command.after);
  const messages = [...(conversation?.messages ?? []), userMessage(command.words)];
  const asked = {
    secret: secretAt(known, command.key),
    path: "chat/completions",
    body: {
      model: models[command.model],
      messages,
      tools,
      stream: command.stream,
      ...(command.named && conversation ? { session_id: conversation.sessionId } : {}),
    },
  };
  return ask(world, known, asked);
}

export async function askRespond(
  world: World,
  known: Known,
  command: Of<"respond">,
): Promise<unknown> {
  const previous = command.after === null ? undefined : at(known.responses, command.after);
  const asked = {
    secret: secretAt(known, command.key),
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
  return ask(world, known, asked);
}

export async function retry(world: World, known: Known): Promise<unknown> {
  return known.last === null ? null : ask(world, known, known.last);
}

/** Asks, and remembers what a later request can go on with. */
async function ask(world: World, known: Known, asked: Asked): Promise<Seen> {
  known.last = asked;
  const answer = await world.drive(world.gateway().fetch(requestOf(asked)).then(seen));
  const told = toldBy(answer);
  if (told?.id.startsWith("resp_")) known.responses.push(told.id);
  const { messages } = asked.body;
  if (told?.message && Array.isArray(messages))
    known.conversations.push({
      sessionId: told.sessionId,
      messages: [...messages, told.message],
    });
  return answer;
}

/** Four events of an answer, five seconds apart: the client is there until it leaves. */
export async function beginSlowly(
  world: World,
  known: Known,
  command: Of<"chatSlowly">,
): Promise<void> {
  world.provider.reply({ text: ["One", " two", " three"], pace: "5s" });
  const client = new AbortController();
  const body = { model: scripted, messages: [userMessage(command.words)], stream: true };
  const asked = { secret: secretAt(known, command.key), path: "chat/completions", body };
  const watched = seenWhile(world.gateway().fetch(requestOf(asked, client.signal)));
  known.streams.push({ leave: () => client.abort(), seen: watched });
}

export async function stored(
  world: World,
  known: Known,
  { type, response, key }: Of<"getResponse" | "listItems" | "deleteResponse">,
): Promise<unknown> {
  const id = at(known.responses, response) ?? "resp_unknown";
  const method = type === "deleteResponse" ? "DELETE" : "GET";
  const path = `responses/${id}${type === "listItems" ? "/input_items" : ""}`;
  const request = requestWithoutBody(method, path, secretAt(known, key));
  return world.drive(world.gateway().fetch(request).then(seen));
}

const secretAt = ({ keys }: Known, number: number): string => at(keys, number)?.secret ?? "none";
const wordsOf = (count: number): string => "word ".repeat(count).trim();
const userMessage = (words: number) => ({ role: "user", content: wordsOf(words) });
