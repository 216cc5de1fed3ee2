import { expect } from "vitest";
import { assistant, user } from "./chain.ts";
import { expectOpened } from "./contract-test.ts";
import { createConversation } from "./conversation.ts";
import { removals, sweepSteps, sweepTranscripts } from "./retention.ts";
import type { SharedTest } from "./shared-responses.ts";

/** Retention that several stores keep on the same data at once. */
export function sharedRetentionTests(test: SharedTest): void {
  test("stores that sweep at once remove each Step once, and count it once", async (subject) => {
    const { store, intents } = subject;
    const sweepers = [store, await subject.another(), await subject.another()];
    const { exchange } = createConversation(store, intents);
    const count = 30;
    for (let at = 0; at < count; at++) await exchange([user(`${at}`)], []);
    const swept = await Promise.all(
      sweepers.flatMap((one) =>
        Array.from({ length: 4 }, () => sweepSteps({ store: one, intents }, { limit: 4 })),
      ),
    );
    expect(swept.reduce((sum, { removed }) => sum + removed, 0)).toBe(count);
    const page = { cursor: null, limit: 100 };
    expect((await store.steps.list({ organizationId: "acme" }, page)).data).toEqual([]);
    const counts = (await removals(store)).map((one) => Number(Reflect.get(Object(one), "count")));
    expect(counts.reduce((sum, one) => sum + one, 0)).toBe(count);
  });

  test("a Session that goes on while it is swept keeps what is new in it", async (subject) => {
    const { store, intents } = subject;
    const sweeper = await subject.another();
    const { exchange } = createConversation(store, intents);
    for (let round = 0; round < 5; round++) {
      const history = [user(`${round}`), assistant("b")];
      const { sessionId } = await exchange(history.slice(0, 1), history.slice(1));
      const at = Date.UTC(2026, 0, 7, 12);
      const step = intents.step([...history, user("c")], { at });
      await Promise.all([
        expectOpened(store.openStep(step)),
        sweepTranscripts({ store: sweeper, intents }),
      ]);
      const parts = await store.sessions.transcript("acme", sessionId);
      expect(parts?.at(-1)?.content).not.toBeNull();
      await store.settleStep(intents.settlement(step, { at }));
    }
  });
}
