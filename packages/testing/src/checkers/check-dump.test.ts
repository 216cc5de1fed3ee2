import { definePolicy, permit } from "@tollgate/core/policy";
import { ProviderError } from "@tollgate/core/provider";
import type {
  Attempt,
  BudgetCounter,
  EvidenceLeaf,
  Step,
  TranscriptPart,
} from "@tollgate/core/store";
import { describe, expect, it } from "vitest";
import { createTestGateway } from "../test-gateway.ts";
import { checkDump } from "./check-dump.ts";
import { dumpStore, type StoreDump } from "./dump.ts";
import { checkQuiet } from "./leases.ts";

/** A dump of a completed Step with a retry, one that failed, and one that still runs. */
async function busyDump(): Promise<StoreDump> {
  const { gateway, provider, clock, store, chat, key } = await createTestGateway({
    budgets: [
      { id: "dollars", limit: { usd: 1 }, period: "day", scope: { each: "key" } },
      { id: "tokens", limit: { tokens: 1_000_000 }, period: "day" },
      { id: "calls", limit: { requests: 9 }, period: "total" },
    ],
  });
  provider.fail(overloaded);
  await clock.until(gateway.fetch(chat({ max_tokens: 9 })));
  provider.fail(new Error("broken"), { afterEvents: 1 });
  await gateway.fetch(chat({ messages: [{ role: "user", content: "Second" }] }));
  const held = provider.hold();
  const running = gateway.fetch(chat({ messages: [{ role: "user", content: "Third" }] }));
  await held.reached();
  const organizations = [key.organizationId];
  const dump = await dumpStore(store, {
    organizations,
    at: clock.now(),
    activity: gateway.activity,
  });
  held.release();
  await running;
  return dump;
}

const overloaded = new ProviderError("Overloaded.", {
  reason: "status_503",
  delivery: "answered",
  status: 503,
});

const changed = <Item>(items: readonly Item[], at: number, change: (item: Item) => object) =>
  items.map((item, place) => (place === at ? { ...item, ...change(item) } : item));

const settled = (dump: StoreDump): number =>
  dump.steps.findIndex(({ attempts }) => attempts.length > 1);

const damages: readonly (readonly [string, (dump: StoreDump) => object])[] = [
  [
    "a Step without attempts",
    ({ steps }) => ({ steps: changed(steps, 0, () => ({ attempts: [] })) }),
  ],
  [
    "hourly sums that do not add up",
    ({ usage }) => ({
      usage: changed(usage, 0, ({ sums }) => ({
        sums: { ...sums, costNanoUsd: sums.costNanoUsd + 1 },
      })),
    }),
  ],
  ["an attempt without its usage record", (dump) => withAttempt(dump, () => ({ end: null }))],
  ["tokens that do not add up", (dump) => withAttempt(dump, addToken)],
  [
    "an outcome that differs from its attempt's",
    (dump) => withStep(dump, () => ({ outcome: "cancelled" })),
  ],
  [
    "a counter that holds too much",
    ({ counters }) => withCounter(counters, ({ held }) => ({ held: held + 1 })),
  ],
  [
    "a counter that settled too little",
    ({ counters }) => withCounter(counters, ({ settled: was }) => ({ settled: was - 1 })),
  ],
  ["a missing counter", ({ counters }) => ({ counters: counters.slice(1) })],
  ["a limit that the holds break", ({ leaves }) => ({ leaves: leaves.map(smallerLimit) })],
  ["an open Step of a dead process", ({ steps }) => ({ lapsedSteps: [steps[0]?.id ?? ""] })],
  [
    "a leaf that was changed",
    ({ leaves }) => ({ leaves: changed(leaves, 1, ({ meta }) => ({ meta: `${meta} ` })) }),
  ],
  ["a duplicate leaf", ({ leaves }) => ({ leaves: [...leaves, ...leaves.slice(-1)] })],
  ["a missing leaf", ({ leaves }) => ({ leaves: leaves.slice(0, -1) })],
  ["a missing decision", ({ decisions }) => ({ decisions: decisions.slice(1) })],
  ["a missing transcript part", (dump) => withParts(dump, (parts) => parts.slice(1))],
  [
    "a part with more messages than it states",
    (dump) => withParts(dump, (parts) => changed(parts, 0, longer)),
  ],
  ["missing activity", () => ({ activity: [] })],
  ["activity of a failed Step", ({ steps }) => ({ activity: steps.map(({ id }) => id) })],
];

describe("the checkers of a dump", () => {
  it("find no problem while Steps run", async () => {
    const dump = await busyDump();
    expect(dump.steps.map(({ attempts }) => attempts.length)).toEqual([1, 1, 2]);
    expect(dump.counters).toHaveLength(3);
    expect(checkDump(dump)).toEqual([]);
    expect(checkQuiet(dump)).toHaveLength(4);
  });

  it("count corrections of a call's attempts in the budgets that each was charged to", async () => {
    const { gateway, provider, clock, store, chat, key } = await createTestGateway({
      policy: definePolicy({
        rules: [permit("all", {}, { fallbacks: ["spare/tollgate/scripted"] })],
      }),
      budgets: [
        { id: "dollars", limit: { usd: 1 }, period: "day", scope: { gateway: "test" } },
        { id: "tokens", limit: { tokens: 1_000_000 }, period: "day" },
      ],
    });
    provider.fail(overloaded, { times: 3 });
    await clock.until(gateway.fetch(chat({ max_tokens: 9 })));
    const { organizationId } = key;
    const [{ id, attempts } = expect.unreachable()] = (await gateway.steps.list({ organizationId }))
      .data;
    const correct = (attempt: number, figures: object) =>
      gateway.steps.correct({ organizationId, id, attempt, reason: "the invoice", ...figures });
    await correct(1, { costNanoUsd: 70_000, usage: { promptTokens: 30, completionTokens: 20 } });
    await correct(1, { costNanoUsd: 60_000 });
    await correct(attempts.length, { usage: { promptTokens: 1, completionTokens: 0 } });
    const dump = await dumpStore(store, {
      organizations: [organizationId],
      at: clock.now(),
      activity: gateway.activity,
    });
    expect(dump.counters.map(({ settled: was }) => was)).toEqual([60_000, 51]);
    expect(checkDump(dump)).toEqual([]);
    const counters = changed(dump.counters, 0, () => ({ settled: 70_000 }));
    expect(checkDump({ ...dump, counters })).toHaveLength(1);
  });

  it.each(damages)("find %s", async (_, damage) => {
    const dump = await busyDump();
    expect(checkDump({ ...dump, ...damage(dump) })).not.toEqual([]);
  });
});

function withStep(dump: StoreDump, change: (step: Step) => object): object {
  return { steps: changed(dump.steps, settled(dump), change) };
}

function withAttempt(dump: StoreDump, change: (attempt: Attempt) => object): object {
  return withStep(dump, ({ attempts }) => ({ attempts: changed(attempts, 0, change) }));
}

function addToken({ end }: Attempt): object {
  const usage = { ...end?.usage, totalTokens: (end?.usage.totalTokens ?? 0) + 1 };
  return { end: { ...end, usage } };
}

function withCounter(
  counters: readonly BudgetCounter[],
  change: (counter: BudgetCounter) => object,
): object {
  return { counters: changed(counters, 0, change) };
}

function smallerLimit(leaf: EvidenceLeaf): EvidenceLeaf {
  return { ...leaf, meta: leaf.meta.replaceAll(/"limit":\d+/g, '"limit":1') };
}

function withParts(
  { sessions }: StoreDump,
  change: (parts: readonly TranscriptPart[]) => readonly TranscriptPart[],
): object {
  return { sessions: sessions.map(({ session, parts }) => ({ session, parts: change(parts) })) };
}

function longer(): object {
  return { content: Buffer.from('[{"role":"user","content":"1"},{"role":"user","content":"2"}]') };
}
