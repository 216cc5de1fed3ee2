import type {
  DecisionQuery,
  DecisionRefusal,
  Metadata,
  SessionQuery,
  StepQuery,
} from "@tollgate/core/store";
import { expect } from "vitest";
import { assistant, user } from "./chain.ts";
import { type ContractTest, expectOpened } from "./contract-test.ts";
import { createConversation } from "./conversation.ts";

const tenant = { organizationId: "acme" };
const paging = { cursor: null, limit: 100 };

/** The filters of every list. */
export function queryTests(test: ContractTest): void {
  test("finds Steps by each of their fields", async ({ store, intents }) => {
    const bob = intents.withOwner({ userId: "bob", keyId: "key-2" });
    await store.keys.insert(bob.key());
    const plain = intents.step([user("a")]);
    const other = bob.step([user("b")], {
      source: "app",
      endpoint: "responses",
      dataClass: "D2_CONFIDENTIAL",
    });
    const model = { gateway: "g", vendor: "v", model: "m/x", connection: "customer" } as const;
    const step = { ...other, attempt: { ...other.attempt, ...model } };
    const first = await expectOpened(store.openStep(plain));
    const second = await expectOpened(store.openStep(step));
    await store.settleStep(bob.settlement(step, { outcome: "failed", attempt: { host: "h" } }));
    const found = async (query: Omit<StepQuery, "organizationId">): Promise<readonly string[]> =>
      (await store.steps.list({ ...tenant, ...query }, paging)).data.map(({ id }) => id);

    // A missing field is a type error here: a store that ignores a field would return other Steps.
    const ofStep: Required<Omit<StepQuery, "organizationId" | "metadata" | "to">> = {
      userId: ["bob"],
      keyId: ["key-2", "key-9"],
      sessionId: [second.sessionId],
      turnId: [second.turnId],
      source: ["app"],
      endpoint: ["responses"],
      dataClass: ["D2_CONFIDENTIAL"],
      decisionId: [step.decision.id],
      gateway: ["g"],
      vendor: ["v"],
      model: ["m/x"],
      connection: ["customer"],
      host: ["h"],
      outcome: ["failed"],
      from: step.at,
    };
    for (const [name, value] of Object.entries(ofStep))
      expect([name, await found({ [name]: value })]).toEqual([name, [step.stepId]]);
    const several = { userId: ["bob"], source: ["app"], outcome: ["failed", "open"] } as const;
    expect(await found(several)).toEqual([step.stepId]);
    expect(await found({ outcome: ["open"] })).toEqual([plain.stepId]);
    expect(await found({ to: step.at })).toEqual([plain.stepId]);
    expect(await found({ sessionId: [first.sessionId], userId: ["bob"] })).toEqual([]);
    expect(await found({ userId: [] })).toEqual([]);
    expect(await found({})).toEqual([step.stepId, plain.stepId]);
  });

  test("finds Steps by exact metadata pairs", async ({ store, intents }) => {
    const odd = { 'a"\n': "\u0000\ud800 ä%_", "": "", __proto__x: "1", ticket: "T-1" };
    const withMetadata = async (metadata: Metadata): Promise<string> => {
      const step = intents.step([user(JSON.stringify(metadata))], { metadata });
      await expectOpened(store.openStep(step));
      return step.stepId;
    };
    const first = await withMetadata(odd);
    const second = await withMetadata({ ticket: "T-12", team: "T-1" });
    const none = await withMetadata({});
    const found = async (metadata: Metadata, organizationId: string | null = "acme") =>
      (await store.steps.list({ organizationId, metadata }, paging)).data.map(({ id }) => id);
    for (const [name, value] of Object.entries(odd))
      if (name !== "ticket") expect(await found({ [name]: value })).toEqual([first]);
    expect(await found({ ticket: "T-1" })).toEqual([first]);
    expect(await found({ ticket: "T-1" }, null)).toEqual([first]);
    expect(await found({ ticket: "T-12", team: "T-1" })).toEqual([second]);
    for (const wrong of [{ ticket: "T" }, { team: "T-12" }, { tick: "T-1" }, { Ticket: "T-1" }])
      expect(await found(wrong)).toEqual([]);
    expect(await found({ ticket: "T-1", team: "T-1" })).toEqual([]);
    expect(await found({ ticket: "T-1" }, "globex")).toEqual([]);
    const metadata = async (id: string) => (await store.steps.get("acme", id))?.metadata;
    expect(await metadata(first)).toEqual(odd);
    expect(await metadata(none)).toEqual({});
  });

  test("finds Steps by their last attempt", async ({ store, intents }) => {
    const step = intents.step([user("a")]);
    await expectOpened(store.openStep(step));
    const attempt = { ...step.attempt, number: 2, model: "fallback" };
    await store.openAttempt(intents.attempt(step, { attempt }));
    const found = async (model: string): Promise<number> =>
      (await store.steps.list({ ...tenant, model: [model] }, paging)).data.length;
    expect([await found("echo"), await found("fallback")]).toEqual([0, 1]);
  });

  test("finds Steps by their model, ignoring only ASCII case", async ({ store, intents }) => {
    const step = intents.step([user("a")]);
    // The Kelvin sign and É have lower-case forms, but are not ASCII.
    const attempt = { ...step.attempt, model: "Gpt-5/\u212A-\u00C9" };
    await expectOpened(store.openStep({ ...step, attempt }));
    const found = async (...model: string[]): Promise<number> => {
      const page = await store.steps.list({ ...tenant, model }, paging);
      const { groups } = await store.steps.summarize({ ...tenant, model, by: ["model"] }, paging);
      expect(groups).toHaveLength(page.data.length);
      return page.data.length;
    };
    expect(await found("gpt-5/\u212A-\u00C9")).toBe(1);
    expect(await found("other", "gpt-5/\u212A-\u00C9")).toBe(1);
    for (const other of ["gpt-5/k-\u00C9", "gpt-5/\u212A-\u00E9", "gpt-5/\u212A-E\u0301"])
      expect(await found(other), other).toBe(0);
  });

  test("finds decisions by effect, owner and time", async ({ store, intents }) => {
    const step = intents.step([user("a")]);
    await expectOpened(store.openStep(step));
    const refusal = intents.withOwner({ userId: "bob", keyId: "key-2" }).refusal();
    await store.recordRefusal(refusal);
    const found = async (
      query: Omit<DecisionQuery, "organizationId">,
    ): Promise<readonly string[]> =>
      (await store.decisions.list({ ...tenant, ...query }, paging)).data.map(({ id }) => id);
    const { at, id } = refusal.decision;
    for (const query of [
      { effect: "deny" },
      { userId: ["bob"] },
      { keyId: ["key-2"] },
      { from: at },
    ] as const)
      expect(await found(query)).toEqual([id]);
    for (const query of [{ effect: "permit" }, { userId: ["ada"] }, { to: at }] as const)
      expect(await found(query)).toEqual([step.decision.id]);
    expect(await found({})).toEqual([id, step.decision.id]);
  });

  test("finds decisions by the reason of their refusal, and reads it back", async ({
    store,
    intents,
  }) => {
    await expectOpened(store.openStep(intents.step([user("a")])));
    await store.recordRefusal(intents.refusal());
    const refusals: readonly DecisionRefusal[] = [
      { by: "budget", budgetId: "day", subject: "ada", unit: "usd", needed: 9, left: 1 },
      { by: "price", param: "service_tier" },
      { by: "connection" },
    ];
    for (const refusal of refusals)
      await store.recordRefusal(intents.refusal({ effect: "permit", refusal }));
    const found = async (query: Omit<DecisionQuery, "organizationId">) =>
      (await store.decisions.list({ ...tenant, ...query }, paging)).data.map(
        ({ refusal }) => refusal,
      );
    const [budget, price, connection] = refusals;
    expect(await found({ refused: true })).toEqual([connection, price, budget]);
    expect(await found({ refused: false })).toEqual([null, null]);
    expect(await found({ refusedBy: ["budget"] })).toEqual([budget]);
    expect(await found({ refusedBy: ["price", "connection"] })).toEqual([connection, price]);
    expect(await found({ refused: false, refusedBy: ["budget"] })).toEqual([]);
    expect(await found({ effect: "deny", refused: true })).toEqual([]);
    expect(await found({ refused: true, userId: ["bob"] })).toEqual([]);
  });

  test("finds Sessions by owner and source, most recently updated first", async ({
    store,
    intents,
  }) => {
    const bob = intents.withOwner({ userId: "bob", keyId: "key-2" });
    await store.keys.insert(bob.key());
    const mine = createConversation(store, intents);
    const first = await mine.open([user("a")]);
    const second = await mine.open([user("b")]);
    const third = await createConversation(store, bob).open([user("c")], { source: "app" });
    const found = async (query: Omit<SessionQuery, "organizationId">): Promise<readonly string[]> =>
      (await store.sessions.list({ ...tenant, ...query }, paging)).data.map(({ id }) => id);
    expect(await found({})).toEqual([third, second, first].map(({ sessionId }) => sessionId));
    for (const query of [{ userId: "bob" }, { keyId: "key-2" }, { source: "app" }])
      expect(await found(query)).toEqual([third.sessionId]);
    await store.settleStep(intents.settlement(first.intent, { reply: [assistant("x")] }));
    expect(await found({ source: "api" })).toEqual([first.sessionId, second.sessionId]);
    const session = await store.sessions.get("acme", first.sessionId);
    expect(session?.updatedAt).toBeGreaterThan(first.intent.at);
  });

  test("lists the Sessions of a key across sources, page by page in one order", async ({
    store,
    intents,
  }) => {
    await store.keys.insert(intents.withOwner({ userId: "bob", keyId: "key-2" }).key());
    const other = createConversation(store, intents.withOwner({ userId: "bob", keyId: "key-2" }));
    const { open } = createConversation(store, intents);
    const ids: string[] = [];
    for (const source of ["web", "api", "desktop", "api", "web"]) {
      ids.unshift((await open([user(`${ids.length}`)], { source })).sessionId);
      await other.open([user(`${ids.length}`)], { source });
    }
    for (const organizationId of ["acme", null]) {
      const query = { organizationId, keyId: intents.owner.keyId };
      const first = await store.sessions.list(query, { cursor: null, limit: 2 });
      const rest = await store.sessions.list(query, { cursor: first.nextCursor, limit: 9 });
      expect([...first.data, ...rest.data].map(({ id }) => id)).toEqual(ids);
      expect(rest.nextCursor).toBeNull();
    }
  });

  test("finds keys by user", async ({ store, intents }) => {
    await store.keys.insert(intents.withOwner({ userId: "bob", keyId: "key-2" }).key());
    const found = await store.keys.list({ ...tenant, userId: "bob" }, paging);
    expect(found.data.map(({ id }) => id)).toEqual(["key-2"]);
  });
}
