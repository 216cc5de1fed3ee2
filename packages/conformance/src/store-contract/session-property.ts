import type { ConversationIntent, Store } from "@tollgate/core/store";
import fc from "fast-check";
import { expect } from "vitest";
import { assistant, type TestMessage, tool, user } from "./chain.ts";
import { type ContractTest, expectOpened } from "./contract-test.ts";
import { createIntents, type Intents } from "./intents.ts";
import { createSessionReference, type SessionReference } from "./session-reference.ts";

/** One request of a random tree: an earlier history, cut, extended, and sent with or without ids. */
interface Send {
  readonly type: "send";
  /** Which of the user's two keys sends it. */
  readonly key: number;
  readonly from: number;
  readonly drop: number;
  readonly add: readonly TestMessage[];
  readonly ids: "omitted" | "session" | "turn" | "both";
  readonly of: number;
  readonly dataClass: string;
}

interface Settle {
  readonly type: "settle";
  readonly key: number;
  readonly which: number;
  readonly reply: readonly TestMessage[];
  readonly completes: boolean;
}

// Few texts, so histories often coincide.
const message = fc.constantFrom(user("a"), user("b"), assistant("a"), assistant("b"), tool("a"));

const send: fc.Arbitrary<Send> = fc.record({
  type: fc.constant("send"),
  key: fc.nat(1),
  from: fc.nat(1_000),
  drop: fc.nat(3),
  add: fc.array(message, { maxLength: 3 }),
  ids: fc.constantFrom("omitted", "omitted", "session", "turn", "both"),
  of: fc.nat(1_000),
  dataClass: fc.constantFrom("D0_PUBLIC", "D1_INTERNAL", "D2_CONFIDENTIAL"),
});

const settle: fc.Arbitrary<Settle> = fc.record({
  type: fc.constant("settle"),
  key: fc.nat(1),
  which: fc.nat(1_000),
  reply: fc.array(message, { minLength: 1, maxLength: 2 }),
  completes: fc.boolean(),
});

const commands = fc.array(
  fc.oneof({ weight: 3, arbitrary: send }, { weight: 2, arbitrary: settle }),
  {
    minLength: 5,
    maxLength: 40,
  },
);

/** Compares assignments, Turns and transcripts with a naive reference on random trees of messages. */
export function sessionPropertyTests(test: ContractTest): void {
  test("assigns Sessions like the naive reference on random trees of messages", async ({
    store,
  }) => {
    let runs = 0;
    await fc.assert(
      fc.asyncProperty(commands, async (list) => {
        // Each run has its own organization, so one store serves all runs.
        const intents = createIntents(`organization-${++runs}`);
        const keys = [intents, intents.withOwner({ keyId: "key-2" })];
        for (const key of keys) await store.keys.insert(key.key());
        const sides = keys.map((key) => createRun(store, key));
        for (const command of list) await sides[command.key]?.execute(command);
        for (const side of sides) await side.compareTranscripts();
      }),
      { numRuns: 60 },
    );
  });
}

interface Sent {
  readonly messages: readonly TestMessage[];
  readonly sessionId: string;
  readonly turnId: string;
}

interface SessionRun {
  execute(command: Send | Settle): Promise<void>;
  compareTranscripts(): Promise<void>;
}

function createRun(store: Store, intents: Intents): SessionRun {
  const reference = createSessionReference();
  const sent: Sent[] = [];
  const histories: (readonly TestMessage[])[] = [[]];
  const inFlight: {
    readonly intent: ConversationIntent;
    readonly messages: readonly TestMessage[];
  }[] = [];

  const sendOne = async (command: Send): Promise<void> => {
    const base = pick(histories, command.from) ?? [];
    const messages = [...base.slice(0, Math.max(0, base.length - command.drop)), ...command.add];
    if (messages.length === 0) return;
    const named = pick(sent, command.of);
    const sessionId = /session|both/.test(command.ids) ? (named?.sessionId ?? null) : null;
    const turnId = /turn|both/.test(command.ids) ? (named?.turnId ?? null) : null;
    const ids = { sessionId, turnId };
    const found = await store.sessions.find(intents.step(messages, { transcript: ids }));
    // The Step expects the Session that was found, so it opens only if finding and assigning agree.
    const intent = intents.step(messages, {
      transcript: { ...ids, expectedSession: found },
      dataClass: command.dataClass,
    });
    const { opened: _, ...assignment } = await expectOpened(store.openStep(intent));
    const { stepId, transcript } = intent;
    const { dataClass } = intent;
    const { handled, ...expected } = reference.open({ stepId, ...transcript, dataClass, messages });
    expect(assignment).toEqual(expected);
    expect(found?.dataClasses ?? []).toEqual(handled);
    sent.push({ messages, ...assignment });
    histories.push(messages);
    inFlight.push({ intent, messages });
  };

  const settleOne = async ({ which, reply, completes }: Settle): Promise<void> => {
    const step = pick(inFlight, which);
    if (!step) return;
    inFlight.splice(inFlight.indexOf(step), 1);
    const { intent, messages } = step;
    const outcome = completes ? "completed" : "failed";
    await store.settleStep(intents.settlement(intent, { outcome, reply }));
    reference.settle(intent.stepId, completes ? reply.map(({ json }) => json) : null);
    histories.push([...messages, ...reply]);
  };

  return {
    execute: (command) => (command.type === "send" ? sendOne(command) : settleOne(command)),
    compareTranscripts: () => compare(store, intents, reference),
  };
}

async function compare(store: Store, intents: Intents, reference: SessionReference): Promise<void> {
  const { organizationId } = intents.owner;
  for (const [id, texts] of reference.histories()) {
    const parts = (await store.sessions.transcript(organizationId, id)) ?? [];
    const bytes = parts.map(({ content }) =>
      Buffer.from(content ?? [])
        .toString()
        .slice(1, -1),
    );
    expect(bytes.join(",")).toBe(texts.join(","));
    expect((await store.sessions.get(organizationId, id))?.length).toBe(texts.length);
  }
}

function pick<Item>(items: readonly Item[], at: number): Item | undefined {
  return items[at % Math.max(1, items.length)];
}
