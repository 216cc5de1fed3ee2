import {
  type CompletionEvent,
  type ModelConfiguration,
  type Provider,
  type ProviderCall,
  ProviderError,
  type UsageReport,
} from "@tollgate/core/provider";
import type { Plan, PlannedCall } from "./plan.ts";

/** The true usage of one call, as its upstream would bill it. */
export interface Bill {
  readonly call: PlannedCall;
  readonly cap: number;
  prompt: number;
  output: number;
  /** Output that only the bill shows. */
  hidden: number;
  /** The tokens that the gateway received, and whether any of them was text, a tool call or shown reasoning. */
  received: number;
  isVisible: boolean;
  hasReasoned: boolean;
  tier: string;
}

/** Prices in nanodollars per token. */
const rates: Readonly<Record<string, { readonly input: number; readonly output: number }>> = {
  default: { input: 1_000, output: 2_000 },
  priority: { input: 2_000, output: 4_000 },
  flex: { input: 500, output: 1_000 },
};
const cachedInput = 100;
const reasoning = 3_000;

/** The highest price of a prompt token at any tier. */
export const maxInputRate = 2_000;
const maxOutputTokens = 25_000;

export const modelId = "up/acme/billed";

function configuration({ reasons, maxOutputTokens }: Plan): ModelConfiguration {
  return {
    input: 1,
    output: 2,
    cachedInput: "0.1",
    reasoning: 3,
    tiers: { priority: { input: 2, output: 4 }, flex: { input: "0.5", output: 1 } },
    reasons,
    ...(maxOutputTokens === null ? {} : { maxOutputTokens }),
  };
}

/** The amount of the bill, computed without the gateway's own arithmetic. */
export function amountOf(bill: Bill): number {
  const { input, output } = rates[bill.tier] ?? { input: 0, output: 0 };
  const cached = bill.call.cached ? Math.floor(bill.prompt / 2) : 0;
  const isStandard = bill.tier === "default";
  const reasoningTokens = reasoningTokensOf(bill);
  return (
    cached * (isStandard ? cachedInput : input) +
    (bill.prompt - cached) * input +
    reasoningTokens * (isStandard ? reasoning : output) +
    (bill.output - reasoningTokens) * output
  );
}

function reasoningTokensOf({ call, hidden }: Bill): number {
  return call.report === "whole" ? hidden : 0;
}

/** The points at which a test acts on a call while its answer arrives. */
export interface Incidents {
  /** Called before the event at this position is sent; the upstream continues when it resolves. */
  readonly before: (call: number, index: number) => Promise<void>;
}

/** An upstream that follows a plan, respects the caps it is given, and knows its true bill. */
export function billedUpstream(
  plan: Plan,
  promptOf: (call: ProviderCall) => number,
  incidents: Incidents,
): { readonly provider: Provider; readonly bills: Map<number, Bill> } {
  const bills = new Map<number, Bill>();

  async function* complete(call: ProviderCall): AsyncGenerator<readonly CompletionEvent[]> {
    yield [{ type: "request-sent", host: "up.test", bodySha256: "00" }];
    const number = numberOf(call);
    const planned = plan.calls[number];
    if (planned === undefined) throw new TypeError("an unplanned call");
    if (planned.end === "refuse") throw failure("answered", 503);
    const bill: Bill = {
      call: planned,
      cap: Math.min(
        call.request.maxOutputTokens ?? maxOutputTokens,
        plan.maxOutputTokens ?? maxOutputTokens,
      ),
      prompt: promptOf(call) + planned.underestimatedBy,
      output: 0,
      hidden: 0,
      received: 0,
      isVisible: false,
      hasReasoned: false,
      tier: call.request.serviceTier ?? "default",
    };
    bills.set(number, bill);
    yield* answer(bill, { call, number });
  }

  async function* answer(
    bill: Bill,
    { call, number }: { readonly call: ProviderCall; readonly number: number },
  ): AsyncGenerator<readonly CompletionEvent[]> {
    const { parts, end, ignoresAbort } = bill.call;
    const collected: CompletionEvent[] = [];
    const deliveries: (() => void)[] = [];
    for (let index = 0; index <= parts.length; index++) {
      await incidents.before(number, index);
      const isStopped = call.signal.aborted;
      if (isStopped && !ignoresAbort) return;
      const next = parts[index];
      if (next === undefined) break;
      const tokens = next.kind === "usage" ? 0 : Math.min(next.tokens, bill.cap - bill.output);
      bill.output += tokens;
      if (next.kind === "hidden" || next.kind === "reasoning") bill.hidden += tokens;
      const events = eventsOf(next.kind, tokens, index, bill);
      if (call.stream && !isStopped && events.length > 0) {
        yield events;
        // The gateway asked for the next event, so the previous one has arrived.
        receive(bill, next.kind, tokens);
      }
      collected.push(...events);
      deliveries.push(() => receive(bill, next.kind, tokens));
    }
    if (call.signal.aborted) return;
    if (end === "silent") await aborted(call.signal);
    if (end === "fail") throw failure("unknown", null);
    if (!call.stream && end === "finish") for (const deliver of deliveries) deliver();
    const last: CompletionEvent[] = [
      ...(bill.call.report === "whole" ? [{ type: "usage" as const, usage: usageOf(bill) }] : []),
      { type: "finish", reason: "stop" },
    ];
    if (end === "finish") yield [...(call.stream ? [] : collected), ...last];
  }

  return {
    bills,
    provider: {
      contract: 1,
      connection: "platform",
      open: false,
      vendor: null,
      models: { "acme/billed": configuration(plan) },
      problems: [],
      complete,
      async close() {},
    },
  };
}

function receive(bill: Bill, kind: string, tokens: number): void {
  if (tokens === 0 || kind === "usage" || kind === "hidden") return;
  bill.received += tokens;
  if (kind === "reasoning") bill.hasReasoned = true;
  else bill.isVisible = true;
}

function eventsOf(
  kind: string,
  tokens: number,
  index: number,
  bill: Bill,
): readonly CompletionEvent[] {
  if (kind === "usage")
    return bill.call.report === "none" ? [] : [{ type: "usage", usage: usageOf(bill) }];
  if (tokens === 0 || kind === "hidden") return [];
  const token = "abc";
  const text = token.repeat(tokens);
  switch (kind) {
    case "tool":
      // The name of a tool is output as well: its first token.
      return [
        { type: "tool-call-started", index, id: `call_${index}`, name: token },
        { type: "tool-call-delta", index, arguments: token.repeat(tokens - 1) },
      ];
    case "reasoning":
      return [{ type: "reasoning-delta", text }];
    default:
      return [{ type: "text-delta", text }];
  }
}

function usageOf(bill: Bill): UsageReport {
  return {
    promptTokens: bill.prompt,
    completionTokens: bill.output,
    ...(bill.call.cached ? { cachedTokens: Math.floor(bill.prompt / 2) } : {}),
    ...(bill.hidden > 0 ? { reasoningTokens: bill.hidden } : {}),
    serviceTier: bill.tier,
  };
}

/** Calls contain their number in their prompt. */
function numberOf({ request }: ProviderCall): number {
  const { content } = request.messages.at(-1) ?? {};
  return typeof content === "string" ? Number(content.split(" ")[1]) : Number.NaN;
}

function failure(delivery: "answered" | "unknown", status: number | null): ProviderError {
  return new ProviderError("Down.", { reason: "down", delivery, status });
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
