import { memoryStore } from "@tollgate/store-memory";
import { createTestGateway, scriptedProvider } from "@tollgate/testing";
import { describe, expect, it } from "vitest";
import { createGateway, type GatewayOptions } from "../src/index.ts";
import { definePolicy, permit } from "../src/policy.ts";
import { failureOf } from "./wire.ts";

const providers = { test: scriptedProvider() };
const policy = definePolicy({ rules: [permit("all", {})] });

function custom(members: object) {
  return { providers: { x: { ...scriptedProvider(), ...members } } };
}

/** Options as JavaScript could pass them. In TypeScript, they wouldn't compile. */
function problemsOf(options: object): string {
  const all: GatewayOptions = { store: memoryStore(), providers, ...options };
  try {
    createGateway(all);
    return "";
  } catch (error) {
    return error instanceof Error ? error.message : "";
  }
}

describe("options", () => {
  it.each([
    ["`onDisconnect` must be abort or drain", { onDisconnect: "ignore" }],
    ["retries.max", { retries: { max: -1 } }],
    ["retries.allowDuplicates", { retries: { allowDuplicates: 1 } }],
    ["retries.sometimes", { retries: { sometimes: 1 } }],
    ["limits.messages", { limits: { messages: 0 } }],
    ["deadlines.idle", { deadlines: { idle: "soon" } }],
    ["deadlines.writeStall", { deadlines: { writeStall: 1 } }],
    ["retention.responses", { retention: { responses: "never" } }],
    ["retention.activity", { retention: { activity: 0 } }],
    ["retention.transcripts", { retention: { transcripts: "-1d" } }],
    ["retention.evidence", { retention: { evidence: "1d" } }],
    ["Unknown option: polcy.", { polcy: {} }],
    ["`budgets` must be a list", { budgets: { id: "b" } }],
    ["`observers` must be a list", { observers: () => {} }],
    ["`observers[0]` must be a function", { observers: [{}] }],
    ["`retries` must be an object", { retries: 0 }],
    ["`limits` must be an object", { limits: 100 }],
    ["Unknown option: limits.mesages.", { limits: { mesages: 5 } }],
    ["`maintenance` must be true or false", { maintenance: "false" }],
    ["`providers.x` must be a provider of contract 1", { providers: { x: {} } }],
    ["`providers.x.problems` must be a list of strings", { providers: { x: { contract: 1 } } }],
    ["`providers.x.problems` must be a list of strings", custom({ problems: [5] })],
    ["`providers.x.connection` must be platform or customer", custom({ connection: "own" })],
    ["`providers.x.embed` must be a function", custom({ embed: true })],
    ["`policy.decide` must be a function", { policy: { contract: 1, sessions: "read" } }],
    ["`policy.version` must be a string", { policy: { ...policy, version: 1 } }],
    ["`policy.models` must be a list of strings", { policy: { ...policy, models: "*" } }],
    ["`policy.fallbacks` must be a list of strings", { policy: { ...policy, fallbacks: [null] } }],
    ["`policy.sessions` must be ignore, read or raise", { policy: { ...policy, sessions: "all" } }],
    ["`ids.uuid` must be a function", { ids: {} }],
    ["`ids.bytes` must be a function", { ids: { uuid: () => "" } }],
    ["`clock.monotonic` must be a function", { clock: { now: () => 0 } }],
    ["`load.loopDelay` must be a function", { load: {} }],
    [
      "`prices.gpt` must be <gateway>/<vendor>/<model>",
      { prices: { gpt: { input: 1, output: 1 } } },
    ],
    ['`prices["test/a/b"]` must be { input, output }', { prices: { "test/a/b": 3 } }],
    ["headerPrefix", { headerPrefix: "X Service" }],
    ["`dataClasses` lists A twice", { dataClasses: ["A", "A"] }],
    [
      "`budgets[0].scope.gateway` names an unknown gateway, nowhere",
      { budgets: [{ id: "b", scope: { gateway: "nowhere" }, limit: { usd: 1 }, period: "day" }] },
    ],
    [
      "`budgets[1].id` is the id of an earlier budget",
      {
        budgets: [
          { id: "b", limit: { usd: 1 }, period: "day" },
          { id: "b", limit: { usd: 2 }, period: "day" },
        ],
      },
    ],
    [
      "`budgets[0].period` must be one of hour, day, week, month, total.",
      { budgets: [{ id: "b", limit: { usd: 1 }, period: "year" }] },
    ],
    [
      "`budgets[0].limit` must be one of",
      { budgets: [{ id: "b", limit: { usd: -1 }, period: "day" }] },
    ],
    [
      "`budgets[0].limit` must be one of",
      { budgets: [{ id: "b", limit: { usd: Number.NaN }, period: "day" }] },
    ],
  ])("are refused at start: %s", (problem, options) => {
    expect(problemsOf(options)).toContain(problem);
  });

  it("count as absent if they are undefined", async () => {
    const { gateway, chat } = await createTestGateway({
      ...{ limits: { maxOutputTokens: undefined, messages: undefined, bodyBytes: undefined } },
      ...{ retries: { max: undefined } },
      budgets: [{ id: "b", limit: { usd: 1 }, period: "day" }],
    } as object);
    expect((await gateway.fetch(chat())).status).toBe(200);
    const messages = Array.from({ length: 2_001 }, () => ({ role: "user", content: "a" }));
    expect((await gateway.fetch(chat({ messages }))).status).toBe(400);
  });

  it("name every member that a store lacks", () => {
    const { contract, ...members } = memoryStore();
    for (const name of Object.keys(members)) {
      const store = { contract, ...members, [name]: undefined };
      expect(problemsOf({ store })).toContain(`\`store.${name}\` must be a`);
    }
    const problems = problemsOf({ store: { contract } }).split("\n");
    expect(problems).toHaveLength(Object.keys(members).length);
  });

  it("are reported with every problem at once", () => {
    const problems = problemsOf({ onDisconnect: "ignore", headerPrefix: "", dataClasses: [] });
    expect(problems.split("\n")).toHaveLength(3);
  });

  it("reject a budget that is both declared and created", async () => {
    const store = memoryStore();
    const budget = { id: "both", limit: { requests: 1 }, period: "day" } as const;
    const one = createGateway({ store, providers });
    await one.budgets.create(budget);
    const two = createGateway({ store, providers, budgets: [budget] });
    await expect(two.ready()).rejects.toMatchObject({ code: "invalid_configuration" });
    const answer = await two.fetch("http://in-process/v1/models");
    const { code, message } = await failureOf(answer);
    expect([answer.status, code]).toEqual([500, "internal_error"]);
    expect(message).not.toContain("both");
  });
});
