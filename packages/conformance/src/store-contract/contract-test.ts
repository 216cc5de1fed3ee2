import type { OpenStepResult, Store } from "@tollgate/core/store";
import { expect, it } from "vitest";
import { createIntents, type Intents } from "./intents.ts";

/** A store under test. The suite migrates and closes it. */
export interface OpenedStore {
  readonly store: Store;
}

/** The subject of a test: an empty store with one live key, the one of `intents`. */
export interface ContractSubject {
  readonly store: Store;
  readonly intents: Intents;
}

/** Declares one test of the suite. */
export type ContractTest = (
  title: string,
  run: (subject: ContractSubject) => Promise<void>,
) => void;

export function createContractTest(open: () => Promise<OpenedStore>): ContractTest {
  return (title, run) => {
    it(title, async () => {
      const { store } = await open();
      try {
        await store.migrate();
        const intents = createIntents();
        await store.keys.insert(intents.key());
        await run({ store, intents });
      } finally {
        await store.close();
      }
    });
  };
}

/** A Step that opened in a Session. */
export type OpenedInSession = Extract<OpenStepResult, { opened: true }> & {
  readonly sessionId: string;
  readonly turnId: string;
};

/** Opens a Step of a conversation and fails the test if the store refuses. */
export async function expectOpened(opening: Promise<OpenStepResult>): Promise<OpenedInSession> {
  const result = await opening;
  if (!result.opened) expect.fail(`The Step was refused: ${JSON.stringify(result.refusal)}`);
  const { sessionId, turnId } = result;
  if (sessionId === null || turnId === null) expect.fail("The Step has no Session.");
  return { ...result, sessionId, turnId };
}
