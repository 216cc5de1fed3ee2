import type { ConversationIntent, Owner, ResponseDraft, Store } from "@tollgate/core/store";
import { expect } from "vitest";
import { assistant, type TestMessage, user } from "./chain.ts";
import { expectOpened } from "./contract-test.ts";
import type { Intents } from "./intents.ts";
import type { ResponseOverrides } from "./response-draft.ts";

/** Stored responses of one owner. */
interface ResponseBuilder {
  /** Opens a Step and settles it with a response. */
  respond(overrides?: ResponseOverrides): Promise<ResponseDraft>;
  /** Stores a chain of responses, each with its own question and answer. */
  chain(length: number, overrides?: (place: number) => ResponseOverrides): Promise<Chain>;
  remove(id: string, at?: number): Promise<boolean>;
}

/** A chain of responses, oldest first, and the messages each adds. */
interface Chain {
  readonly ids: readonly string[];
  readonly added: readonly (readonly TestMessage[])[];
}

export function createResponseBuilder(store: Store, intents: Intents): ResponseBuilder {
  const respond: ResponseBuilder["respond"] = async (overrides = {}) => {
    const step = await openStepIn(store, intents);
    const response = intents.response(step, overrides);
    const settlement = intents.settlement(step, { response });
    expect(await store.settleStep(settlement)).toMatchObject({ settled: true });
    return response;
  };
  return {
    respond,
    async chain(length, overrides = () => ({})) {
      const ids: string[] = [];
      const added: (readonly TestMessage[])[] = [];
      for (let place = 0; place < length; place++) {
        const messages = [user(`question ${place}`), assistant(`answer ${place}`)];
        const previousResponseId = ids.at(-1) ?? null;
        const built = { messages, previousResponseId, inherited: added.flat() };
        ids.push((await respond({ ...built, ...overrides(place) })).id);
        added.push(messages);
      }
      return { ids, added };
    },
    remove: (id, at = 0) =>
      store.responses.delete({
        owner: intents.owner,
        id,
        at,
        leaf: intents.leaf("response.deleted"),
      }),
  };
}

/**
 * The messages of a history as the text between the brackets of its arrays, so that they compare byte for byte
 * however they are split into arrays. Null if the response doesn't exist.
 */
export async function historyOf(
  store: Store,
  owner: Owner,
  id: string,
  at = 0,
): Promise<string | null> {
  const history = await store.responses.history(owner, id, at);
  return history && textOf(history.messages);
}

/** The text of the elements of JSON arrays, one after the other. */
export function textOf(arrays: readonly Uint8Array[]): string {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  return arrays
    .map((array) => decoder.decode(array).trim().slice(1, -1))
    .filter((elements) => elements !== "")
    .join(",");
}

/** Messages in the format of `historyOf`. */
export function textOfMessages(messages: readonly TestMessage[]): string {
  return messages.map(({ json }) => json).join(",");
}

/** Opens a Step and leaves it in flight without a response. */
export async function openStepIn(store: Store, intents: Intents): Promise<ConversationIntent> {
  const step = intents.step([user("question")], { endpoint: "responses" });
  await expectOpened(store.openStep(step));
  return step;
}
