import type { ProcessLoad } from "@tollgate/core";
import { definePolicy, forbid, permit } from "@tollgate/core/policy";
import { ProviderError } from "@tollgate/core/provider";
import type { Store } from "@tollgate/core/store";
import { memoryStore } from "@tollgate/store-memory";
import { createTestGateway, type TestGateway } from "@tollgate/testing";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { type ConversationEndpoint, conversations, endpoints } from "./endpoints.ts";
import { itemsOf, responsesOf } from "./responses-calls.ts";

const say = (content: string) => ({ messages: [{ role: "user", content }] });
const kilobyte = say("x".repeat(1_000));

async function statusOf(answer: Promise<Response>): Promise<number> {
  const { status, body } = await answer;
  await body?.cancel();
  return status;
}

/** A gateway with two further keys, whose calls wait for `release`. */
async function busyGateway(options: Parameters<typeof createTestGateway>[0]) {
  const test = await createTestGateway(options);
  const hold = test.provider.hold();
  const [second, third] = [await test.createKey(), await test.createKey()];
  const running: Promise<number>[] = [];
  const begin = async (chat: TestGateway["chat"], count = 1): Promise<void> => {
    const calls = test.provider.calls.length + count;
    for (let request = 0; request < count; request++)
      running.push(statusOf(test.gateway.fetch(chat(kilobyte))));
    while (test.provider.calls.length < calls)
      await new Promise((resolve) => setImmediate(resolve));
  };
  const finish = async (): Promise<void> => {
    hold.release();
    expect(new Set(await Promise.all(running))).toEqual(new Set(running.length > 0 ? [200] : []));
  };
  return { ...test, first: test.chat, second: second.chat, third: third.chat, begin, finish };
}

describe("stored responses that are read", () => {
  it("take room for their bytes until the client has them (H8)", async () => {
    const limits = { bytesInFlightPerKey: 3_000_000, imageBodyBytes: 4_000_000 };
    const test = await createTestGateway({ limits, maintenance: false });
    const { create, inputItems } = responsesOf(test.gateway, test.key.secret);
    // Pairs of which one would be cut at any even place, and one at any odd place.
    const text = `${"😀".repeat(300_000)}a${"😀".repeat(300_000)}`;
    const { id } = await create({ input: text });
    const items = () => inputItems(id);
    const [first, second] = [await items(), await items()];
    expect([first.status, second.status]).toEqual([200, 503]);
    expect(await first.text()).toContain(text);
    const third = await items();
    expect(third.status).toBe(200);
    await third.body?.cancel();
    expect((await items()).status).toBe(200);
  });

  it.each([
    ["answers", "get", {}],
    ["input items", "inputItems", {}],
    ["histories", "create", { store: false }],
    ["items", "create", { store: false }],
  ] as const)("let other work run between them: their %s", async (what, method, fields) => {
    let [now, turn, left] = [0, 0, 8];
    const reads: number[] = [];
    const read = <Result>(result: Result): Result => {
      now += 50;
      reads.push(turn);
      return result;
    };
    const store = memoryStore();
    const { get, history } = store.responses;
    const responses: Store["responses"] = {
      ...store.responses,
      get: async (...of) => read(await get(...of)),
      history: async (...of) => read(await history(...of)),
    };
    const test = await createTestGateway({ store: { ...store, responses }, maintenance: false });
    const calls = responsesOf(test.gateway, test.key.secret);
    const { id } = await calls.create();
    const [item] = (await itemsOf(calls.inputItems(id))).data;
    reads.length = 0;
    const clock = vi.spyOn(performance, "now").mockImplementation(() => now);
    onTestFinished(() => clock.mockRestore());
    const ask = async (): Promise<void> => {
      if (method !== "create") await calls[method](id);
      else if (what === "histories") await calls.create({ ...fields, previous_response_id: id });
      else await calls.create({ ...fields, input: [{ type: "item_reference", id: item?.id }] });
      left--;
    };
    const asked = Promise.all(Array.from({ length: left }, ask));
    while (left > 0) {
      turn++;
      await new Promise((resolve) => setImmediate(resolve));
    }
    await asked;
    expect(reads).toHaveLength(8);
    expect(new Set(reads).size).toBe(8);
  });

  it("are read eight at a time, key by key", async () => {
    const store = memoryStore();
    const waiting: (() => void)[] = [];
    const order: string[] = [];
    const get: Store["responses"]["get"] = async (owner, id, at) => {
      order.push(owner.keyId);
      await new Promise<void>((resolve) => waiting.push(resolve));
      return store.responses.get(owner, id, at);
    };
    const responses = { ...store.responses, get };
    const test = await createTestGateway({ store: { ...store, responses } });
    const other = await test.createKey();
    const { id } = await responsesOf(test.gateway, test.key.secret).create();
    const turns = async (): Promise<void> => {
      for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve));
    };
    const client = new AbortController();
    const ask = (secret: string, signal?: AbortSignal): Promise<number> => {
      const headers = { authorization: `Bearer ${secret}` };
      const url = `http://in-process/v1/responses/${id}`;
      return statusOf(test.gateway.fetch(url, { headers, ...(signal ? { signal } : {}) }));
    };
    const flood = Array.from({ length: 10 }, () => ask(test.key.secret));
    await turns();
    const left = ask(other.key.secret, client.signal).catch(() => 0);
    await turns();
    const theirs = ask(other.key.secret);
    await turns();
    expect(order).toHaveLength(8);
    client.abort();
    expect(await left).toBe(0);
    // A governed request doesn't wait for reads.
    expect(await statusOf(test.gateway.fetch(test.chat()))).toBe(200);
    for (let read = 0; read < 11; read++) {
      waiting.shift()?.();
      await turns();
    }
    expect([await Promise.all(flood), await theirs]).toEqual([Array(10).fill(200), 404]);
    const [one, two] = [test.key.id, other.key.id];
    expect(order.slice(8)).toEqual([one, two, one]);
    expect(test.gateway.status().admitted).toBe(0);
  });

  it("take room for all that is read with them", async () => {
    const limits = { bytesInFlightPerKey: 3_000_000, imageBodyBytes: 4_000_000 };
    const { gateway, key } = await createTestGateway({ limits, maintenance: false });
    const { create, get, inputItems } = responsesOf(gateway, key.secret);
    const { id } = await create({ input: "x".repeat(2_400_000) });
    const held = await inputItems(id);
    expect((await get(id)).status).toBe(503);
    await held.text();
    expect((await get(id)).status).toBe(200);
  });
});

describe("a long plain answer", () => {
  const long = "\u00e9".repeat(200_000);

  /** A gateway with an unread answer of 400 KB, which is more than its key may have. */
  async function answered(endpoint: ConversationEndpoint, headers = {}) {
    const limits = { bytesInFlightPerKey: 300_000 };
    const test = await createTestGateway({ limits, maintenance: false });
    const request = (fields: object = {}) =>
      test.gateway.fetch(endpoint.request(test.key.secret, fields, headers));
    test.provider.reply(long);
    const unread = await request();
    const other = () => test.gateway.fetch(test.chat(kilobyte));
    return { ...test, unread, request, other };
  }

  const ends = [
    ["read", (answer: Response) => answer.text()],
    ["cancelled", (answer: Response) => answer.body?.cancel()],
  ] as const;
  const everywhere = conversations.flatMap((endpoint) =>
    ends.map(([name, end]) => [endpoint.name, name, end, endpoint] as const),
  );

  it.each(everywhere)("of %s takes room for its bytes until it is %s", async (...of) => {
    const [, , end, endpoint] = of;
    const { gateway, unread, other } = await answered(endpoint);
    expect([unread.status, await statusOf(other())]).toEqual([200, 503]);
    expect(gateway.status()).toMatchObject({ admitted: 1, openSteps: 0 });
    await end(unread);
    expect(gateway.status().admitted).toBe(0);
    expect(await statusOf(other())).toBe(200);
  });

  it.each(conversations)("of $name takes room when it is repeated, too", async (endpoint) => {
    const test = await answered(endpoint, { "idempotency-key": "order-17" });
    const { provider, unread, request, other } = test;
    const text = await unread.text();
    const repeated = await request();
    expect(repeated.headers.get("idempotency-replayed")).toBe("true");
    expect(await statusOf(other())).toBe(503);
    expect(await repeated.text()).toBe(text);
    expect(await statusOf(other())).toBe(200);
    expect(provider.calls).toHaveLength(2);
  });

  it.each(conversations)("of $name is never refused, however little room there is", async (of) => {
    const { gateway, provider, unread, request } = await answered(of);
    await unread.body?.cancel();
    const hold = provider.hold();
    provider.reply(long);
    provider.reply(long);
    const asked = [request(), request()];
    await hold.reached(2);
    hold.release();
    for (const answer of await Promise.all(asked)) {
      expect(answer.status).toBe(200);
      expect(await answer.text()).toContain(long);
    }
    expect(gateway.status().admitted).toBe(0);
  });
});

describe("request bodies in flight", () => {
  it.each(endpoints)(
    "are limited per key: a further $name gets 503, opens no Step and asks no provider",
    async ({ request, says, expectFailure }) => {
      const test = await busyGateway({ limits: { bytesInFlightPerKey: 2_500 } });
      const { gateway, provider, first, second, begin, finish } = test;
      await begin(first, 2);
      const further = () => gateway.fetch(request(test.key.secret, says("x".repeat(1_000))));
      const answer = await further();
      expect(answer.status).toBe(503);
      expect(answer.headers.get("retry-after")).toBe("1");
      expect(answer.headers.get("x-should-retry")).toBe("true");
      await expectFailure(answer, {
        code: "overloaded",
        messagesType: "overloaded_error",
        message: /gateway is overloaded/,
      });
      expect(provider.calls).toHaveLength(2);
      const { data } = await gateway.steps.list({ organizationId: test.key.organizationId });
      expect(data).toHaveLength(2);
      await begin(second);
      await finish();
      expect(await statusOf(further())).toBe(200);
    },
  );

  it("are refused before any byte is read, by the length that they announce (H8)", async () => {
    const test = await busyGateway({ limits: { bytesInFlightPerKey: 2_500 } });
    const { gateway, first, begin, finish } = test;
    await begin(first, 2);
    let isRead = false;
    const body = new ReadableStream<Uint8Array>(
      {
        pull() {
          isRead = true;
        },
      },
      { highWaterMark: 0 },
    );
    const { url, headers } = first(kilobyte);
    const request = new Request(url, { method: "POST", headers, body, duplex: "half" });
    request.headers.set("content-length", "2000");
    expect(await statusOf(gateway.fetch(request))).toBe(503);
    expect(isRead).toBe(false);
    await finish();
  });

  it.each(["are announced", "have arrived"])(
    "have a bound while clients hold 40 uploads open whose bytes %s (H8)",
    async (bytes) => {
      const test = await createTestGateway({ limits: { bytesInFlightPerKey: 9_000 } });
      const other = await test.createKey();
      const clients = new AbortController();
      const statuses: number[] = [];
      const hold = async (): Promise<void> => {
        const { url, headers } = test.chat();
        const body = new ReadableStream<Uint8Array>({
          start(controller) {
            if (bytes === "have arrived") controller.enqueue(new Uint8Array(4_000));
          },
        });
        const { signal } = clients;
        const request = new Request(url, { method: "POST", headers, body, duplex: "half", signal });
        if (bytes === "are announced") request.headers.set("content-length", "4000");
        statuses.push(await statusOf(test.gateway.fetch(request)));
      };
      const uploads = Array.from({ length: 40 }, hold);
      while (statuses.length < 38) await new Promise((resolve) => setImmediate(resolve));
      expect(new Set(statuses)).toEqual(new Set([503]));
      expect(await statusOf(test.gateway.fetch(other.chat(kilobyte)))).toBe(200);
      expect(await statusOf(test.gateway.fetch(test.chat(kilobyte)))).toBe(503);
      expect(statuses).toHaveLength(38);
      clients.abort();
      await Promise.allSettled(uploads);
      expect(await statusOf(test.gateway.fetch(test.chat(kilobyte)))).toBe(200);
    },
  );

  it("leave the last quarter to keys with less than their share", async () => {
    const test = await busyGateway({ limits: { bytesInFlight: 8_800 } });
    const { gateway, first, second, third, begin, finish } = test;
    await begin(first, 6);
    expect(await statusOf(gateway.fetch(first(kilobyte)))).toBe(503);
    await begin(second);
    await begin(third);
    expect(await statusOf(gateway.fetch(third(kilobyte)))).toBe(503);
    await finish();
  });

  it("never keep out a single request that is larger than all of them may be", async () => {
    const { gateway, chat } = await createTestGateway({
      limits: { bytesInFlight: 10, bytesInFlightPerKey: 10 },
    });
    expect(await statusOf(gateway.fetch(chat(kilobyte)))).toBe(200);
  });

  const ends = [
    ["completed", 200, {}],
    ["failed", 502, { fails: true }],
    ["streamed", 200, { stream: true }],
    ["denied", 403, { model: "test/acme/forbidden" }],
    ["invalid", 400, { temperature: "warm" }],
  ] as const;
  const everywhere = endpoints.flatMap((endpoint) =>
    ends
      .filter(([name]) => name !== "streamed" || endpoint.streamed.stream)
      .map((end) => [endpoint.name, ...end, endpoint] as const),
  );
  it.each(everywhere)("count no longer once a %s is %s", async (...of) => {
    const [, , status, { ...fields }, { request, says }] = of;
    const { gateway, provider, key } = await createTestGateway({
      retries: { max: 0 },
      limits: { bytesInFlightPerKey: 1_200 },
      policy: definePolicy({
        rules: [permit("all"), forbid("one", { model: "test/acme/forbidden" })],
      }),
    });
    const { fails, ...sent } = { fails: false, ...fields };
    for (let round = 0; round < 3; round++) {
      if (fails)
        provider.fail(new ProviderError("It failed.", { reason: "fault", delivery: "answered" }));
      const large = request(key.secret, { ...says("x".repeat(1_000)), ...sent });
      const answer = await gateway.fetch(large);
      expect(answer.status).toBe(status);
      await answer.text();
    }
  });

  it.each(conversations)(
    "count no longer once the client of a streamed $name has left",
    async (endpoint) => {
      const test = await createTestGateway({ limits: { bytesInFlightPerKey: 1_200 } });
      for (let round = 0; round < 3; round++) {
        test.provider.reply({ text: ["one", "two"] });
        const fields = { ...endpoint.says("x".repeat(1_000)), stream: true };
        const answer = await test.gateway.fetch(endpoint.request(test.key.secret, fields));
        expect(answer.status).toBe(200);
        await answer.body?.cancel();
        await test.clock.advance(1);
      }
    },
  );
});

it("admits as many requests as the process may answer at once, and the last quarter fairly", async () => {
  const test = await busyGateway({ limits: { openRequests: 8 } });
  const { gateway, first, second, third, begin, finish } = test;
  await begin(first, 6);
  expect(await statusOf(gateway.fetch(first(kilobyte)))).toBe(503);
  await begin(second, 2);
  expect(await statusOf(gateway.fetch(third(kilobyte)))).toBe(503);
  await finish();
  expect(await statusOf(gateway.fetch(third(kilobyte)))).toBe(200);
});

describe("a busy process", () => {
  function loaded() {
    const now = { delay: 0, heap: 0 };
    const load: ProcessLoad = { loopDelay: () => now.delay, heapShare: () => now.heap };
    return { now, load };
  }

  it.each([
    ["whose event loop is late", { delay: 300 }],
    ["whose heap is almost full", { heap: 0.9 }],
  ])("%s refuses only keys with more than their share in flight", async (_, busy) => {
    const { now, load } = loaded();
    const { gateway, first, second, third, begin, finish } = await busyGateway({ load });
    await begin(first, 4);
    Object.assign(now, busy);
    await begin(second, 3);
    expect(await statusOf(gateway.fetch(first(kilobyte)))).toBe(503);
    await begin(third);
    await finish();
    expect(await statusOf(gateway.fetch(first(kilobyte)))).toBe(200);
  });

  it("whose event loop is very late takes one request of each key at a time", async () => {
    const { now, load } = loaded();
    const { gateway, first, second, begin, finish } = await busyGateway({ load });
    await begin(first);
    now.delay = 600;
    expect(await statusOf(gateway.fetch(first(kilobyte)))).toBe(503);
    await begin(second);
    await finish();
  });

  it("whose heap is nearly exhausted refuses every request", async () => {
    const { now, load } = loaded();
    const { gateway, chat } = await createTestGateway({ load });
    const { authorization = "" } = Object.fromEntries(chat().headers);
    const models = () => gateway.fetch("http://gateway/v1/models", { headers: { authorization } });
    now.heap = 0.95;
    expect([await statusOf(gateway.fetch(chat())), await statusOf(models())]).toEqual([503, 503]);
    now.heap = 0.5;
    expect([await statusOf(gateway.fetch(chat())), await statusOf(models())]).toEqual([200, 200]);
  });
});

it("frees the room of requests whose cached key was rotated", async () => {
  const test = await createTestGateway({ maintenance: false, limits: { openings: 4 } });
  const { organizationId } = test.key;
  const { key, chat } = await test.createKey();
  expect(await statusOf(test.gateway.fetch(chat()))).toBe(200);
  await test.gateway.keys.rotate({ organizationId, id: key.id });
  const answers = Array.from({ length: 8 }, () => statusOf(test.gateway.fetch(chat())));
  expect(new Set(await Promise.all(answers))).toEqual(new Set([401]));
  expect(test.gateway.status().admitted).toBe(0);
  expect(await statusOf(test.gateway.fetch(test.chat()))).toBe(200);
});

describe("a caller in the same process", () => {
  it("that asks again at once leaves the event loop its turns", async () => {
    const test = await busyGateway({ limits: { bytesInFlightPerKey: 2_500 } });
    await test.begin(test.first, 2);
    let hasRun = false;
    setImmediate(() => {
      hasRun = true;
    });
    let asked = 0;
    while (!hasRun && asked < 100) {
      asked++;
      expect(await statusOf(test.gateway.fetch(test.first(kilobyte)))).toBe(503);
    }
    expect(asked).toBeLessThanOrEqual(2);
    await test.finish();
  });
});

describe("requests that wait for their turn", () => {
  /** A store that opens one Step for each call of `open`. */
  function stepwise() {
    const store = memoryStore();
    const steps: (() => void)[] = [];
    const opening: Store = {
      ...store,
      async openStep(intent) {
        await new Promise<void>((resolve) => steps.push(resolve));
        return store.openStep(intent);
      },
    };
    const open = async (): Promise<void> => {
      while (steps.length === 0) await new Promise((resolve) => setImmediate(resolve));
      steps.shift()?.();
    };
    return { store: opening, open, opening: () => steps.length };
  }

  async function lineOf(limits: { readonly openings: number; readonly waiting: number }) {
    const { store, open, opening } = stepwise();
    const test = await createTestGateway({ store, limits });
    const second = await test.createKey();
    const send = async (chat: TestGateway["chat"], content: string, signal?: AbortSignal) => {
      const request = chat(say(content));
      const answer = test.gateway.fetch(signal ? new Request(request, { signal }) : request);
      // The next request is sent only after this one waits.
      for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve));
      return { status: statusOf(answer).catch(() => 0) };
    };
    const asked = (): readonly unknown[] =>
      test.provider.calls.map(({ request }) => request.messages.at(-1)?.content);
    return { ...test, first: test.chat, second: second.chat, send, open, opening, asked };
  }

  it("get turns key by key, so a flood of one key delays another's by one request", async () => {
    const test = await lineOf({ openings: 1, waiting: 10 });
    const { first, second, send, open } = test;
    const sent = [await send(first, "a1")];
    for (const text of ["a2", "a3", "a4"]) sent.push(await send(first, text));
    sent.push(await send(second, "b1"));
    expect(test.opening()).toBe(1);
    for (let step = 0; step < sent.length; step++) await open();
    expect(await Promise.all(sent.map(({ status }) => status))).toEqual([200, 200, 200, 200, 200]);
    expect(test.asked()).toEqual(["a1", "a2", "b1", "a3", "a4"]);
  });

  it("are refused if the line is full: the oldest of the key that has the most", async () => {
    const test = await lineOf({ openings: 1, waiting: 3 });
    const { first, second, send, open } = test;
    const running = await send(first, "a1");
    const others = [await send(second, "b1")];
    const oldest = await send(first, "a2");
    others.push(await send(first, "a3"), await send(first, "a4"));
    expect(await oldest.status).toBe(503);
    for (let step = 0; step < 4; step++) await open();
    expect(await running.status).toBe(200);
    expect(await Promise.all(others.map(({ status }) => status))).toEqual([200, 200, 200]);
    expect(test.asked()).toEqual(["a1", "b1", "a3", "a4"]);
  });

  it("are refused after five seconds, and then the line is empty", async () => {
    const test = await lineOf({ openings: 1, waiting: 10 });
    const { first, second, send, open, clock } = test;
    const running = await send(first, "a1");
    const early = await send(first, "a2");
    await clock.advance("3s");
    const late = await send(second, "b1");
    await clock.advance("2s");
    expect(await early.status).toBe(503);
    await open();
    await open();
    expect([await running.status, await late.status]).toEqual([200, 200]);
    await test.gateway.close();
    expect(clock.timers()).toBe(0);
  });

  it("are each refused five seconds after they came", async () => {
    const test = await lineOf({ openings: 1, waiting: 10 });
    const { first, second, send, open, clock } = test;
    const running = await send(first, "a1");
    const refused: string[] = [];
    const wait = async (chat: typeof first, text: string) => {
      const { status } = await send(chat, text);
      void status.then((code) => refused.push(`${text} ${code}`));
    };
    await wait(first, "a2");
    await clock.advance("1s");
    await wait(second, "b1");
    await clock.advance("2s");
    await wait(first, "a3");
    const seen: string[][] = [];
    for (const duration of [1_999, 1, 999, 1, 1_999, 1]) {
      await clock.advance(duration);
      seen.push([...refused]);
    }
    const [one, two, three] = ["a2 503", "b1 503", "a3 503"];
    expect(seen).toEqual([[], [one], [one], [one, two], [one, two], [one, two, three]]);
    await open();
    expect(await running.status).toBe(200);
    expect(test.asked()).toEqual(["a1"]);
  });

  it("leave their line when their client leaves", async () => {
    const test = await lineOf({ openings: 1, waiting: 10 });
    const { first, send, open } = test;
    const running = await send(first, "a1");
    const client = new AbortController();
    const left = await send(first, "a2", client.signal);
    const next = await send(first, "a3");
    client.abort();
    expect(await left.status).toBe(0);
    await open();
    await open();
    expect([await running.status, await next.status]).toEqual([200, 200]);
    expect(test.asked()).toEqual(["a1", "a3"]);
    await test.gateway.close();
    expect(test.clock.timers()).toBe(0);
  });
});
