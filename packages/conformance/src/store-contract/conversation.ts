import type { ConversationIntent, Store } from "@tollgate/core/store";
import type { TestMessage } from "./chain.ts";
import { expectOpened } from "./contract-test.ts";
import type { Intents } from "./intents.ts";
import type { StepOverrides } from "./step-intent.ts";

/** A Step of a conversation, and the Session and Turn the store assigned. */
export interface OpenedStep {
  readonly intent: ConversationIntent;
  readonly sessionId: string;
  readonly turnId: string;
  readonly branchedFromSessionId: string | null;
}

/** Requests of one owner to one store. */
interface Conversation {
  /** Opens a Step and leaves it in flight. */
  open(messages: readonly TestMessage[], named?: NamedIds): Promise<OpenedStep>;
  /** Opens a Step and completes it with a reply. */
  exchange(
    messages: readonly TestMessage[],
    reply: readonly TestMessage[],
    named?: NamedIds,
  ): Promise<OpenedStep>;
}

export interface NamedIds {
  readonly sessionId?: string;
  readonly turnId?: string;
  readonly previousSessionId?: string;
  readonly source?: string;
}

export function createConversation(store: Store, intents: Intents): Conversation {
  const open: Conversation["open"] = async (messages, named = {}) => {
    const intent = intents.step(messages, overridesOf(named));
    const { opened: _, ...assignment } = await expectOpened(store.openStep(intent));
    return { intent, ...assignment };
  };
  return {
    open,
    async exchange(messages, reply, named) {
      const step = await open(messages, named);
      await store.settleStep(intents.settlement(step.intent, { reply }));
      return step;
    },
  };
}

export function overridesOf({ source, ...ids }: NamedIds): StepOverrides {
  return { ...(source === undefined ? {} : { source }), transcript: ids };
}
