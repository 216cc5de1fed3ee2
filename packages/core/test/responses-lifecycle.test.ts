import { memoryStore } from "@tollgate/store-memory";
import { createTestGateway, faultyStore, type TestGatewayOptions } from "@tollgate/testing";
import { describe, expect, it } from "vitest";
import {
  eventOf,
  eventsOf,
  itemsOf,
  lastResponse,
  responseOf,
  responsesOf,
} from "./responses-calls.ts";
import { stores } from "./stores.ts";
import { failureOf } from "./wire.ts";
import { written } from "./written.ts";

const day = 24 * 60 * 60 * 1_000;

async function start(options: TestGatewayOptions = {}) {
  const test = await createTestGateway({ maintenance: false, ...options });
  return { ...test, responses: responsesOf(test.gateway, test.key.secret) };
}

describe.each(stores)("a stored response (sections 2.7 and 3), on %s", (_, open) => {
  it("is stored by default, and retrieved as the same JSON value as when it was created", async () => {
    const { provider, responses } = await start({ store: open() });
    provider.reply({
      reasoning: "Hm.",
      text: "Grüße, \0 🌍",
      toolCalls: [{ name: "look", arguments: "{}" }],
    });
    const answer = await responses.post({ metadata: { a: "b" }, tools: [], user: "u" });
    const created: unknown = await answer.json();
    const { id } = await responseOf(Response.json(created));
    const retrieved = await responses.get(id);
    expect([retrieved.status, retrieved.headers.get("content-type")]).toEqual([
      200,
      "application/json",
    ]);
    expect(await retrieved.json()).toEqual(created);
    expect(
      await (await responses.get(`${id}?include[]=reasoning.encrypted_content`)).json(),
    ).toEqual(created);
  });

  it("of a stream is retrieved as in its terminal event", async () => {
    const { provider, responses } = await start({ store: open() });
    provider.reply({ text: ["Hel", "lo"] });
    const completed = lastResponse(await eventsOf(responses.post({ stream: true, store: true })));
    expect(await (await responses.get(completed.id)).json()).toEqual(completed);
  });

  it("is gone once deleted, but its evidence remains unchanged", async () => {
    const { gateway, key, responses } = await start({ store: open() });
    const { organizationId } = key;
    const evidence = async () => [
      (await gateway.steps.list({ organizationId })).data,
      (await gateway.activity.list({ organizationId })).data,
      (await gateway.decisions.list({ organizationId })).data,
    ];
    const { id } = await responses.create();
    const before = await evidence();
    expect(await (await responses.remove(id)).json()).toEqual({
      id,
      object: "response",
      deleted: true,
    });
    for (const ask of [responses.get, responses.remove, responses.inputItems, responses.remove])
      expect((await ask(id)).status).toBe(404);
    expect(await failureOf(responses.post({ previous_response_id: id }))).toMatchObject({
      code: "previous_response_not_found",
    });
    expect(await evidence()).toEqual(before);
  });

  it("with store: false can't be retrieved or referred to, but still has a Step", async () => {
    const { gateway, key, responses } = await start({ store: open() });
    const created = await responses.create({ store: false });
    expect(created["store"]).toBe(false);
    expect((await responses.get(created.id)).status).toBe(404);
    expect((await responses.inputItems(created.id)).status).toBe(404);
    expect((await responses.post({ previous_response_id: created.id })).status).toBe(400);
    const { data } = await gateway.activity.list({ organizationId: key.organizationId });
    expect(data).toMatchObject([{ keyLabel: "test key", totalTokens: 15 }]);
  });

  it("is kept for 30 days, and then is like one that never existed", async () => {
    const { clock, responses } = await start({ store: open() });
    const { id } = await responses.create();
    const end = clock.now() + 30 * day;
    clock.setWall(end - 1);
    expect((await responses.get(id)).status).toBe(200);
    clock.setWall(end);
    expect((await responses.get(id)).status).toBe(404);
    expect((await responses.remove(id)).status).toBe(404);
    expect((await responses.post({ previous_response_id: id })).status).toBe(400);
  });

  it("is kept as long as the retention option says", async () => {
    const { clock, responses } = await start({ store: open(), retention: { responses: "90s" } });
    const { id } = await responses.create();
    clock.setWall(clock.now() + 89_000);
    expect((await responses.get(id)).status).toBe(200);
    clock.setWall(clock.now() + 1_000);
    expect((await responses.get(id)).status).toBe(404);
  });

  it("is removed by one sweep with all that was kept for it, however long the chain", async () => {
    const { gateway, responses } = await start();
    const ids: string[] = [];
    for (let place = 0; place < 70; place++) {
      const previous_response_id = ids.at(-1);
      const { id } = await responses.create(previous_response_id ? { previous_response_id } : {});
      ids.push(id);
    }
    for (const id of ids) expect((await responses.remove(id)).status).toBe(200);
    // The last deletion removed 33, and each chunk names one of the rest and removes 32 more.
    expect(await gateway.sweep()).toBe(2);
    expect(await gateway.sweep()).toBe(0);
  });

  it("is removed by sweep once it has expired, in bounded chunks, and its evidence remains", async () => {
    const chunks: number[] = [];
    const store = open();
    const watched = {
      ...store,
      responses: {
        ...store.responses,
        async sweep(query: { readonly at: number; readonly limit: number }) {
          const removed = await store.responses.sweep(query);
          chunks.push(removed);
          expect(removed).toBeLessThanOrEqual(query.limit);
          return removed;
        },
      },
    };
    const { gateway, clock, responses } = await start({
      store: watched,
      retention: { responses: "1h" },
    });
    for (let count = 0; count < 101; count++) await responses.create();
    clock.setWall(clock.now() + 3_600_000);
    const { id } = await responses.create();
    const steps = await written(gateway);
    expect(await gateway.sweep()).toBe(101);
    expect(chunks.length).toBeGreaterThan(1);
    expect(await gateway.sweep()).toBe(0);
    expect((await responses.get(id)).status).toBe(200);
    expect(await written(gateway)).toEqual(steps);
  });

  it("lists its own input items, page by page, in either order", async () => {
    const { responses } = await start({ store: open() });
    const before = await responses.create({ input: "Earlier" });
    const said = Array.from({ length: 25 }, (_, index) => ({ role: "user", content: `${index}` }));
    const { id } = await responses.create({
      previous_response_id: before.id,
      instructions: "Be brief.",
      input: said,
    });
    const texts = ({ data }: Awaited<ReturnType<typeof itemsOf>>) =>
      data.map((item) => JSON.stringify(item["content"]).match(/"text":"(\d+)"/)?.[1]);
    const newest = await itemsOf(responses.inputItems(id));
    expect(texts(newest)).toEqual(
      said
        .map(({ content }) => content)
        .toReversed()
        .slice(0, 20),
    );
    expect([newest.first_id, newest.last_id, newest.has_more]).toEqual([
      newest.data[0]?.id,
      newest.data[19]?.id,
      true,
    ]);
    const rest = await itemsOf(responses.inputItems(id, `?after=${newest.last_id}`));
    expect([texts(rest), rest.has_more]).toEqual([["4", "3", "2", "1", "0"], false]);
    const oldest = await itemsOf(responses.inputItems(id, "?order=asc&limit=2&include[]=x"));
    expect([texts(oldest), oldest.has_more]).toEqual([["0", "1"], true]);
    const past = await itemsOf(responses.inputItems(id, `?after=${rest.last_id}`));
    expect(past).toMatchObject({ data: [], first_id: null, last_id: null, has_more: false });
  });

  it.each(["limit=0", "limit=101", "limit=x", "limit=", "order=up", "after=msg_1"])(
    "refuses a page of %s, naming the parameter",
    async (query) => {
      const { responses } = await start({ store: open() });
      const { id } = await responses.create();
      const answer = await responses.inputItems(id, `?${query}`);
      expect(answer.status).toBe(400);
      expect(await failureOf(answer)).toMatchObject({
        type: "invalid_request_error",
        code: "invalid_value",
        param: query.split("=")[0],
      });
    },
  );
});

describe("a response that a client received complete", () => {
  it("can be retrieved: no terminal event comes before the settlement is durable", async () => {
    const { store, fault } = faultyStore(memoryStore(), {
      on: { verb: "settleStep", nth: 1, when: "before", action: "wait" },
    });
    const { responses } = await start({ store });
    const stream = await responses.post({ stream: true });
    const reader = stream.body?.pipeThrough(new TextDecoderStream()).getReader();
    let seen = "";
    const reading = (async () => {
      for (;;) {
        const { done, value = "" } = (await reader?.read()) ?? { done: true };
        if (done) return;
        seen += value;
      }
    })();
    await fault.reached();
    const { id } = await responseOfStart(seen);
    expect(seen).not.toMatch(/response\.(completed|output_item\.done)/);
    expect((await responses.get(id)).status).toBe(404);
    fault.release();
    await reading;
    expect(seen).toContain("event: response.completed");
    expect((await responses.get(id)).status).toBe(200);
  });

  it("can be retrieved and continued as soon as its terminal event arrives", async () => {
    for (const [, open] of stores) {
      const { responses } = await start({ store: open() });
      const stream = await responses.post({ stream: true });
      const decoder = new TextDecoder();
      let seen = "";
      for await (const bytes of stream.body ?? []) {
        seen += decoder.decode(bytes, { stream: true });
        const id = /event: response\.completed\n.*?"id":"(resp_[0-9a-f]+)"/.exec(seen)?.[1];
        if (id === undefined) continue;
        expect((await responses.get(id)).status).toBe(200);
        expect((await responses.create({ previous_response_id: id })).previous_response_id).toBe(
          id,
        );
      }
      expect(seen).toContain("response.completed");
    }
  });
});

/** The id in a stream's first event. */
async function responseOfStart(seen: string): Promise<{ readonly id: string }> {
  const created = eventOf(seen.split("\n\n")[0] ?? "", 0);
  expect(created.type).toBe("response.created");
  return { id: /"id":"(resp_[0-9a-f]+)"/.exec(seen)?.[1] ?? "" };
}
