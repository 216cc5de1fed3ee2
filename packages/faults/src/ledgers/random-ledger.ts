import type { StepRecord } from "@tollgate/core";
import { definePolicy, permit } from "@tollgate/core/policy";
import { ProviderError } from "@tollgate/core/provider";
import type { Store } from "@tollgate/core/store";
import { countingIds, createTestGateway, manualClock } from "@tollgate/testing";
import fc from "fast-check";

/** One act on a ledger: a request and how it ends, or a correction of an attempt's usage and cost. */
export type LedgerAct =
  | {
      readonly type: "ask";
      readonly ending:
        | "completed"
        | "failed"
        | "unknown"
        | "fallback"
        | "cancelled"
        | "interrupted";
      readonly stream: boolean;
      readonly tokens: readonly [prompt: number, completion: number];
    }
  | {
      readonly type: "correct";
      readonly which: number;
      readonly tokens: readonly [prompt: number, completion: number] | null;
      readonly cost: number;
    };

const tokens = fc.tuple(fc.nat(5_000), fc.nat(500));

export const anyActs: fc.Arbitrary<readonly LedgerAct[]> = fc.array(
  fc.oneof(
    {
      weight: 3,
      arbitrary: fc.record({
        type: fc.constant("ask" as const),
        ending: fc.constantFrom(
          "completed" as const,
          "failed" as const,
          "unknown" as const,
          "fallback" as const,
          "cancelled" as const,
          "interrupted" as const,
        ),
        stream: fc.boolean(),
        tokens,
      }),
    },
    {
      weight: 2,
      arbitrary: fc.record({
        type: fc.constant("correct" as const),
        which: fc.nat(100),
        tokens: fc.option(tokens),
        cost: fc.nat(50_000_000),
      }),
    },
  ),
  { minLength: 1, maxLength: 12 },
);

const budgets = [
  { id: "all-usd", limit: { usd: 1_000 }, period: "total" },
  { id: "key-tokens", scope: { each: "key" }, limit: { tokens: 100 }, period: "day", mode: "soft" },
  { id: "requests", limit: { requests: 10_000 }, period: "month" },
  { id: "spare-usd", scope: { gateway: "spare" }, limit: { usd: 1_000 }, period: "week" },
] as const;

/** Two gateways on a store; the process of the second dies as soon as it has sent its request. */
export async function openLedger(store: Store) {
  const options = {
    store,
    budgets,
    retries: { max: 0 },
    prices: { "spare/a/two": { input: 3, output: 4 } },
    policy: definePolicy({ rules: [permit("all", {}, { fallbacks: ["spare/a/two"] })] }),
  };
  const dying = await createTestGateway({ ...options, clock: manualClock() });
  const living = await createTestGateway({ ...options, ids: countingIds(1) });
  const all = { organizationId: dying.key.organizationId };
  const { gateway, provider, clock } = living;

  async function openSteps(): Promise<number> {
    return (await steps()).filter(({ outcome }) => outcome === "open").length;
  }

  async function cancel(body: Record<string, unknown>): Promise<void> {
    const client = new AbortController();
    const calls = provider.calls.length;
    // The gateway reads a plain answer to its end after its client left, which must happen before the lease lapses.
    provider.reply({ text: ["a", "b"], delay: "10s" });
    const request = new Request(living.chat(body), { signal: client.signal });
    const asked = gateway.fetch(request).then((answer) => answer.text());
    while (provider.calls.length === calls) await new Promise((resolve) => setImmediate(resolve));
    client.abort();
    await asked.catch(() => {});
  }

  async function ask({ ending, stream, tokens: [promptTokens, completionTokens] }: Ask) {
    const body = { stream, max_completion_tokens: 500 };
    if (ending === "interrupted") {
      dying.provider.reply(() => new Promise(() => {}));
      const calls = dying.provider.calls.length;
      void dying.gateway.fetch(dying.chat(body));
      while (dying.provider.calls.length === calls)
        await new Promise((resolve) => setImmediate(resolve));
      return;
    }
    if (ending === "cancelled") return cancel(body);
    if (ending === "failed") provider.fail(refused, { times: 2 });
    if (ending === "fallback") provider.fail(refused);
    if (ending === "unknown") provider.fail(unknown);
    if (ending === "completed" || ending === "fallback")
      provider.reply({ text: "OK", usage: { promptTokens, completionTokens } });
    await (await gateway.fetch(living.chat(body))).text();
  }

  async function correct({ which, tokens: usage, cost }: Correct): Promise<void> {
    const settled = (await steps()).filter(({ outcome }) => outcome !== "open");
    const step = settled[which % Math.max(1, settled.length)];
    if (!step) return;
    const [promptTokens, completionTokens] = usage ?? [0, 0];
    await gateway.steps.correct({
      ...all,
      id: step.id,
      attempt: (which % step.attempts.length) + 1,
      costNanoUsd: cost,
      ...(usage === null ? {} : { usage: { promptTokens, completionTokens } }),
      reason: "a later word",
    });
  }

  async function steps(): Promise<readonly StepRecord[]> {
    return (await gateway.steps.list(all, { limit: 1_000 })).data;
  }

  return {
    gateway,
    steps,
    act: (one: LedgerAct) => (one.type === "ask" ? ask(one) : correct(one)),
    /** Lets the lease of the dead process lapse, and waits until no Step is open. */
    async recover(): Promise<void> {
      await clock.advance("40s");
      for (let round = 0; round < 100 && (await openSteps()) > 0; round++) await gateway.recover();
    },
  };
}

type Ask = Extract<LedgerAct, { type: "ask" }>;
type Correct = Extract<LedgerAct, { type: "correct" }>;

const refused = new ProviderError("Busy.", {
  reason: "status_503",
  delivery: "answered",
  status: 503,
});
const unknown = new ProviderError("Down.", { reason: "down", delivery: "unknown" });
