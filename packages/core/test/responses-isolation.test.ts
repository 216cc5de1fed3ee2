import { createTestGateway } from "@tollgate/testing";
import { describe, expect, it, vi } from "vitest";
import { type ResponsesCalls, responsesOf } from "./responses-calls.ts";
import { stores } from "./stores.ts";
import { written } from "./written.ts";

const day = 24 * 60 * 60 * 1_000;

/** The callers other than the owner. */
const strangers = {
  "the same user with another key": {},
  "another user of the organization": { userId: "user-2" },
  "another organization": { organizationId: "organization-2" },
  "another organization's user of the same name and label": {
    organizationId: "organization-2",
    userId: "user-1",
    label: "test key",
  },
} as const;

/** Everything a caller can do with a response id. */
type Use = (calls: ResponsesCalls, id: string) => Promise<Response>;
const uses: Readonly<Record<string, Use>> = {
  GET: (calls, id) => calls.get(id),
  DELETE: (calls, id) => calls.remove(id),
  input_items: (calls, id) => calls.inputItems(id),
  previous_response_id: (calls, id) => calls.post({ previous_response_id: id }),
  "previous_response_id of a stream": (calls, id) =>
    calls.post({ previous_response_id: id, stream: true }),
  "item_reference to its output": (calls, id) =>
    calls.post({ input: [{ type: "item_reference", id: itemOf(id, "o0") }] }),
  "item_reference to its input": (calls, id) =>
    calls.post({ input: [{ type: "item_reference", id: itemOf(id, "i0") }] }),
};

const itemOf = (id: string, place: string) => `${id.replace(/^resp_/, "msg_")}_${place}`;

/** A gateway with one response in each state. All except the last belong to one owner. */
async function everyState(open: (typeof stores)[number][1]) {
  const test = await createTestGateway({ store: open(), maintenance: false });
  const { gateway, clock, key, createKey } = test;
  const owner = responsesOf(gateway, key.secret);
  const expired = await owner.create();
  clock.setWall(clock.now() + 30 * day);
  const [stored, deleted, stateless] = [
    await owner.create(),
    await owner.create(),
    await owner.create({ store: false }),
  ];
  await owner.remove(deleted.id);
  const ids = {
    stored: stored.id,
    deleted: deleted.id,
    expired: expired.id,
    stateless: stateless.id,
    random: "resp_0190a00000007000800000000000ffff",
    malformed: "resp_%2e%2e%00'--",
    "of another series": "resp_0190A000000070008000000000000001",
  };
  const others = await Promise.all(
    Object.entries(strangers).map(async ([name, creation]) => {
      const other = await createKey({ label: "other", ...creation });
      return [name, responsesOf(gateway, other.key.secret)] as const;
    }),
  );
  return { ...test, owner, others, ids };
}

/** Everything that could tell a caller two answers apart. */
async function seen(answer: Response) {
  const { "x-request-id": requestId, ...headers } = Object.fromEntries(answer.headers);
  expect(requestId).toBeTruthy();
  return JSON.stringify([answer.status, headers, await answer.text()]);
}

describe.each(stores)("responses belong to one key (S9), on %s", (_, open) => {
  it("the owner can use a stored response in every way", async () => {
    for (const [name, use] of Object.entries(uses)) {
      const { owner, ids } = await everyState(open);
      expect((await use(owner, ids.stored)).status, name).toBe(200);
    }
  });

  it("others' ids get the same answer as deleted, expired, stateless, random and malformed ones", async () => {
    const { gateway, provider, owner, others, ids } = await everyState(open);
    const asked = provider.calls.length;
    const before = await written(gateway);
    const { stored, ...gone } = ids;
    const callers = [["the owner", owner] as const, ...others];
    for (const [name, use] of Object.entries(uses)) {
      const answers = new Map<string, string>();
      for (const [caller, calls] of callers) {
        const own = caller === "the owner";
        for (const [state, id] of Object.entries(own ? gone : ids))
          answers.set(`${caller}, ${state}`, await seen(await use(calls, id)));
      }
      const [first = ""] = answers.values();
      for (const [which, answer] of answers) expect(answer, `${name}: ${which}`).toBe(first);
      expect(first.slice(0, 5), name).toBe(name.startsWith("previous") ? "[400," : "[404,");
    }
    expect(provider.calls).toHaveLength(asked);
    expect(await written(gateway)).toEqual(before);
    expect((await owner.get(stored)).status).toBe(200);
  });

  it("the answers are those in the table of errors", async () => {
    const { owner, ids } = await everyState(open);
    const error = async (answer: Promise<Response>) => (await answer).json();
    expect(await error(owner.get(ids.random))).toEqual({
      error: {
        message: "Response not found.",
        type: "invalid_request_error",
        param: null,
        code: "response_not_found",
      },
    });
    expect(await error(owner.post({ previous_response_id: ids.random }))).toMatchObject({
      error: {
        type: "invalid_request_error",
        param: "previous_response_id",
        code: "previous_response_not_found",
      },
    });
    const reference = { type: "item_reference", id: itemOf(ids.random, "o0") };
    const input = [{ role: "user", content: "Hello" }, reference];
    expect(await error(owner.post({ input }))).toMatchObject({
      error: { type: "invalid_request_error", param: "input[1]", code: "item_not_found" },
    });
  });

  it("a rotated key keeps its responses, and a new key with the same label has none", async () => {
    const { gateway, key, ids, createKey } = await everyState(open);
    const { organizationId, id } = key;
    const { secret } = await gateway.keys.rotate({ organizationId, id });
    expect((await responsesOf(gateway, secret).get(ids.stored)).status).toBe(200);
    const fresh = await createKey();
    expect((await responsesOf(gateway, fresh.key.secret).get(ids.stored)).status).toBe(404);
  });

  it("another key's response never gives access to its Session", async () => {
    const { gateway, owner, others, ids } = await everyState(open);
    const { session_id } = JSON.parse(await (await owner.get(ids.stored)).text());
    for (const [, calls] of others) {
      const answer = await calls.post({ session_id });
      expect(answer.status).toBe(404);
    }
    expect((await written(gateway)).sessions).toBeGreaterThan(0);
  });
});

describe("an id that no gateway creates", () => {
  it("never reaches the store, whatever characters it contains", async () => {
    const { gateway, key, store } = await createTestGateway();
    const asked = (["get", "history", "delete"] as const).map((name) =>
      vi.spyOn(store.responses, name),
    );
    const calls = responsesOf(gateway, key.secret);
    for (const id of ["resp_\0", "resp_", "x".repeat(4_000), "resp_%", "тест"]) {
      expect((await calls.post({ previous_response_id: id })).status).toBe(400);
      const path = encodeURIComponent(id);
      for (const ask of [calls.get, calls.remove, calls.inputItems])
        expect((await ask(path)).status, id).toBe(404);
    }
    for (const spy of asked) expect(spy).not.toHaveBeenCalled();
    await calls.get(`resp_${"0".repeat(32)}`);
    expect(asked[0]).toHaveBeenCalledOnce();
  });
});

it("ids of others and unknown ids cost the same read of the store (T2)", async () => {
  const { store, others, ids } = await everyState(stores[0]?.[1] ?? expect.unreachable);
  const asked = (["get", "history", "delete"] as const).map((name) =>
    vi.spyOn(store.responses, name),
  );
  const [, stranger] = others[0] ?? expect.unreachable("no stranger's id was made");
  for (const use of Object.values(uses)) {
    const looks = [];
    for (const id of [ids.stored, ids.deleted, ids.random]) {
      await use(stranger, id);
      looks.push(asked.map((spy) => spy.mock.calls.length));
      for (const spy of asked) spy.mockClear();
    }
    expect(looks[1]).toEqual(looks[0]);
    expect(looks[2]).toEqual(looks[0]);
    expect(looks[0]?.reduce((sum, count) => sum + count)).toBe(1);
  }
});

describe("requests without a key, or with one that no longer works", () => {
  it("get 401 on every endpoint, whatever the id", async () => {
    const { gateway, key, owner, ids } = await everyState(stores[0]?.[1] ?? expect.unreachable);
    await gateway.keys.revoke({ organizationId: key.organizationId, id: key.id });
    for (const calls of [owner, responsesOf(gateway, "tg_wrong")])
      for (const [name, use] of Object.entries(uses))
        for (const id of Object.values(ids))
          expect((await use(calls, id)).status, `${name} ${id}`).toBe(401);
  });
});
