import type { Owner, ResponseDraft, StepIntent, Store } from "@tollgate/core/store";
import { expect } from "vitest";
import { assistant, type TestMessage, user } from "./chain.ts";
import { expectOpened } from "./contract-test.ts";
import type { Intents } from "./intents.ts";
import type { ResponseOverrides } from "./response-draft.ts";

/** Stored responses of one owner. */
export interface Responding {
  /** Opens a Step and settles it with a response. */
  respond(overrides?: ResponseOverrides): Promise<ResponseDraft>;
  /** Stores a chain of responses, each with a question and an answer of its own; later ones know all before. */
  chain(length: number, overrides?: (place: number) => ResponseOverrides): Promise<Chain>;
  remove(id: string, at?: number): Promise<boolean>;
}

/** A chain of responses, oldest first, and the messages that each adds. */
export interface Chain {
  readonly ids: readonly string[];
  readonly added: readonly (readonly TestMessage[])[];
}

export function createResponding(store: Store, intents: Intents): Responding {
  const respond: Responding["respond"] = async (overrides = {}) => {
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
 * The messages of a history as the texts between the brackets of its arrays, so that they compare byte for byte
 * however they are cut into arrays; null when there is no such response.
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

/** The text of JSON arrays' elements, one after the other. */
export function textOf(arrays: readonly Uint8Array[]): string {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  return arrays
    .map((array) => decoder.decode(array).trim().slice(1, -1))
    .filter((elements) => elements !== "")
    .join(",");
}

/** Messages as `historyOf` gives them. */
export function textOfMessages(messages: readonly TestMessage[]): string {
  return messages.map(({ json }) => json).join(",");
}

/** A Step in flight that has no response yet. */
export async function openStepIn(store: Store, intents: Intents): Promise<StepIntent> {
  const step = intents.step([user("question")], { endpoint: "responses" });
  await expectOpened(store.openStep(step));
  return step;
}
