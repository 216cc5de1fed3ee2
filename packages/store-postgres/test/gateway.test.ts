import {
  checkDump,
  checkQuiet,
  countingIds,
  createTestGateway,
  dumpStore,
  type TestGatewayOptions,
} from "@tollgate/testing";
import pg from "pg";
import { expect, inject, it, onTestFinished } from "vitest";
import { postgresStore } from "../src/index.ts";
import { freshSchema } from "./databases.ts";

const organization = "organization-1";

/** Two gateways on one schema, each with its own store and connections. */
async function openGateways(options: TestGatewayOptions = {}) {
  const schema = freshSchema();
  const open = async (series: number) => {
    const test = await createTestGateway({
      store: postgresStore({ url: inject("postgresUrl") }, { schema }),
      ids: countingIds(series),
      budgets: [{ id: "fifty", limit: { requests: 50 }, period: "total" }],
      gateways: ["other"],
      ...options,
    });
    onTestFinished(() => test.gateway.close());
    return test;
  };
  return [await open(1), await open(2)] as const;
}

async function problemsOf({
  store,
  gateway,
  clock,
}: Awaited<ReturnType<typeof createTestGateway>>) {
  const { activity } = gateway;
  const query = { organizations: [organization], at: clock.now(), activity };
  const dump = await dumpStore(store, query);
  return [...checkDump(dump), ...checkQuiet(dump)];
}

it("accepts exactly 50 of 200 concurrent requests to two gateways (F40, B1)", async () => {
  const gateways = await openGateways();
  const [first] = gateways;
  const holds = gateways.map(({ provider }) => provider.hold());
  const refused: Response[] = [];
  const answers = Array.from({ length: 200 }, async (_, at) => {
    const { gateway, chat } = gateways[at % 2 === 0 ? 0 : 1];
    const messages = [{ role: "user", content: `request ${at}` }];
    const answer = await gateway.fetch(chat({ messages, stream: at % 3 === 0 }));
    if (answer.status === 429) refused.push(answer);
    return [answer.status, await answer.text()] as const;
  });
  const calls = () => gateways.flatMap(({ provider }) => provider.calls).length;
  while (refused.length < 150 || calls() < 50)
    await new Promise((resolve) => setImmediate(resolve));
  const counter = async () => (await first.gateway.budgets.status({ id: "fifty" })).data;
  expect(await counter()).toMatchObject([{ settled: 0, held: 50 }]);
  for (const hold of holds) hold.release();
  const statuses = (await Promise.all(answers)).map(([status]) => status);
  expect(statuses.filter((status) => status === 200)).toHaveLength(50);
  expect(calls()).toBe(50);
  expect(await counter()).toMatchObject([{ settled: 50, held: 0 }]);
  expect(await problemsOf(first)).toEqual([]);
}, 30_000);

it("continues one Session when the same request reaches two gateways at once (F42)", async () => {
  const [first, second] = await openGateways();
  const opening = [{ role: "user", content: "Hello" }];
  await (await first.gateway.fetch(first.chat({ messages: opening }))).json();
  const messages = [
    ...opening,
    { role: "assistant", content: "OK" },
    { role: "user", content: "And then?" },
  ];
  const holds = [first, second].map(({ provider }) => provider.hold());
  const key = first.chat({ messages });
  const same = new Request(key.clone());
  const answers = [first.gateway.fetch(key), second.gateway.fetch(same)];
  await Promise.all(holds.map((hold) => hold.reached()));
  for (const hold of holds) hold.release();
  for (const answer of await Promise.all(answers)) expect(answer.status).toBe(200);
  const sessions = first.store.sessions.list(
    { organizationId: organization },
    { cursor: null, limit: 10 },
  );
  expect((await sessions).data).toHaveLength(1);
  expect(await problemsOf(first)).toEqual([]);
});

it("removes each Step and erases each Session once while two gateways sweep at the same time", async () => {
  const gateways = await openGateways({
    maintenance: false,
    retention: { activity: "1d", transcripts: "1d" },
  });
  const [first] = gateways;
  const count = 20;
  for (let at = 0; at < count; at++) {
    const messages = [{ role: "user", content: `question ${at}` }];
    await (await first.gateway.fetch(first.chat({ messages }))).json();
  }
  for (const { clock } of gateways) clock.setWall(clock.now() + 3 * 86_400_000);
  const swept = await Promise.all(
    gateways.flatMap(({ gateway }) => [gateway.sweep(), gateway.sweep()]),
  );
  expect(swept.reduce((sum, removed) => sum + removed, 0)).toBe(2 * count);
  const { data } = await first.gateway.steps.list({ organizationId: organization });
  expect(data).toEqual([]);
  expect(await problemsOf(first)).toEqual([]);
});

it("restores a signature that the client dropped, from the Session that the Step continues", async () => {
  const [{ gateway, provider, chat }, other] = await openGateways();
  const state = { extra_content: { google: { thought_signature: "thought" } } };
  provider.reply({ toolCalls: [{ name: "look_up", arguments: "{}", state }] });
  const tools = [{ type: "function", function: { name: "look_up" } }];
  const question = { role: "user", content: "How warm is Paris?" };
  expect((await gateway.fetch(chat({ messages: [question], tools }))).status).toBe(200);
  const called = { id: "call_1", type: "function", function: { name: "look_up", arguments: "{}" } };
  const messages = [
    question,
    { role: "assistant", content: null, tool_calls: [called] },
    { role: "tool", tool_call_id: "call_1", content: "18 degrees" },
  ];
  // Any process that shares the store restores it.
  expect((await other.gateway.fetch(chat({ messages, tools }))).status).toBe(200);
  expect(other.provider.calls[0]?.request.messages[1]).toMatchObject({
    tool_calls: [{ state: { from: "test/tollgate", fields: state } }],
  });
});

it("gives each of 50 tenants its own answers while others leave and two connections serve all (S11)", async () => {
  const pool = new pg.Pool({ connectionString: inject("postgresUrl"), max: 2 });
  const store = postgresStore({ pool }, { schema: freshSchema() });
  const test = await createTestGateway({ store, retries: { max: 0 } });
  const { gateway, provider, createKey } = test;
  provider.reply(({ request }) => JSON.stringify(request.messages.at(-1)?.content), {
    times: Number.POSITIVE_INFINITY,
  });
  onTestFinished(async () => {
    await gateway.close();
    await pool.end();
  });
  const tenants = await Promise.all(
    Array.from({ length: 50 }, async (_, number) => {
      const organizationId = `tenant-${number}`;
      const { chat } = await createKey({ organizationId });
      return { chat, canary: `canary of ${organizationId}.` };
    }),
  );
  const seen = await Promise.all(
    tenants.flatMap(({ chat, canary }, number) =>
      Array.from({ length: 2 }, async (_, round) => {
        const messages = [{ role: "user", content: canary }];
        const leaver = new AbortController();
        // Every other request is left after another number of turns of the event loop.
        if (round % 2 === 0) void leaveAfter(leaver, number * 3 + round);
        const request = chat({ messages, stream: number % 2 === 0 });
        const signal = leaver.signal;
        const answer = await gateway.fetch(new Request(request, { signal })).then(
          (own) => own.text(),
          () => "",
        );
        return { canary, answer, isWhole: round % 2 === 1 };
      }),
    ),
  );
  for (const { canary, answer, isWhole } of seen) {
    if (isWhole) expect(answer).toContain(canary);
    expect(answer.match(/canary of tenant-\d+\./g) ?? []).toSatisfy((found: readonly string[]) =>
      found.every((one) => one === canary),
    );
  }
}, 30_000);

async function leaveAfter(leaver: AbortController, turns: number): Promise<void> {
  for (let turn = 0; turn < turns; turn++) await new Promise((resolve) => setImmediate(resolve));
  leaver.abort();
}
