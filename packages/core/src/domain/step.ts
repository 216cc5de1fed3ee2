import type { Correction } from "./correction.ts";
import type { ConnectionOwnership } from "./policy-decision.ts";
import type { Price, PriceSource } from "./price.ts";
import type { Usage, UsageBasis } from "./usage.ts";

/** How a Step ended: the provider answered, it failed, the client left, or the Step's process died. */
export type StepOutcome = (typeof stepOutcomes)[number];

/** Every outcome of a settled Step. */
export const stepOutcomes = ["completed", "failed", "cancelled", "interrupted"] as const;

/** How often each unknown member of a request's history was dropped, by name. */
export type DroppedFields = Readonly<Record<string, number>>;

/** A client's labels for a request: at most 16 pairs, with names up to 64 and values up to 512 characters. */
export type Metadata = Readonly<Record<string, string>>;

/** The endpoint that received a Step's request. */
export type EndpointName = (typeof endpointNames)[number];

/** The endpoints whose Steps belong to a Session and a Turn. */
export const conversationEndpoints = ["chat_completions", "responses", "messages"] as const;

/** Every endpoint that opens Steps. */
export const endpointNames = [...conversationEndpoints, "embeddings"] as const;

/**
 * The source of the output that an attempt holds: the client's cap, the policy's cap, the model's own limit,
 * `limits.maxOutputTokens` for a model without a known limit, or the amount that hard budgets had left.
 */
export type OutputCapSource = "client" | "policy" | "model" | "limit" | "budget";

/** One attempt as it starts: its model, the account it uses, its price and its estimates. */
export interface AttemptStart {
  /** Counts from 1 within the Step. */
  readonly number: number;
  readonly decisionId: string;
  readonly gateway: string;
  readonly vendor: string;
  readonly model: string;
  readonly connection: ConnectionOwnership;
  readonly price: Price | null;
  /** The service tiers that its hold covers: first the requested one, then those that may serve it instead. */
  readonly serviceTiers: readonly string[];
  readonly estimatedInputTokens: number;
  /** The output tokens it holds. Sent upstream as a cap if a hard budget in dollars or tokens, or the policy's cap, applies. */
  readonly estimatedOutputTokens: number;
  readonly outputCapFrom: OutputCapSource;
  /** Whether the model is known to reason. If so, the visible answer doesn't determine its cost. */
  readonly reasons: boolean;
  readonly startedAt: number;
}

/** How one attempt ended. Both its usage record and its generation billing record. */
export interface AttemptEnd {
  readonly outcome: StepOutcome;
  readonly reason: string | null;
  /** The upstream's host; null if nothing was sent. */
  readonly host: string | null;
  /** SHA-256 in hex of the body that was sent; null if nothing was sent. */
  readonly bodySha256: string | null;
  readonly providerRequestId: string | null;
  readonly providerModel: string | null;
  readonly usage: Usage;
  readonly usageBasis: UsageBasis;
  /** Null if no price is known, which is not zero. */
  readonly costNanoUsd: number | null;
  /** `estimated` if the usage is, or if the tier that served it has no price or wasn't reported. */
  readonly costBasis: UsageBasis;
  readonly priceSource: PriceSource;
  /** The cost that the provider reported, even if it isn't used; null if it reported none. */
  readonly reportedCostNanoUsd: number | null;
  /** The service tier that the provider reported; null if it reported none. */
  readonly serviceTier: string | null;
  /** Milliseconds. */
  readonly durationMs: number;
  readonly timeToFirstTokenMs: number | null;
  readonly toolCalls: number;
  /** The provider's error text; null if it gave none. */
  readonly error: AttemptError | null;
}

/** A provider's own error text: content, because it can quote the prompt. */
export interface AttemptError {
  /** At most 2 KiB, without secrets; null if the policy keeps only digests, or retention erased it. */
  readonly message: string | null;
  /** SHA-256 in hex of its salt and text, the same as in the attempt's evidence leaf. */
  readonly commitment: string;
}

/** One attempt of a Step; `end` is null while it is in flight. */
export interface Attempt extends AttemptStart {
  readonly end: AttemptEnd | null;
  /** Oldest first. The last one counts. Absent if nothing was corrected. */
  readonly corrections?: readonly Correction[];
}

/**
 * One POST, as stores return it. Its usage and cost are the sums over its attempts. A Step of a conversation belongs to a
 * Session and a Turn. An embeddings call has none: its `sessionId`, `turnId`, `stepNumber` and `head` are null.
 */
export interface Step {
  readonly id: string;
  readonly organizationId: string;
  readonly userId: string;
  readonly keyId: string;
  readonly keyLabel: string;
  readonly source: string;
  readonly endpoint: EndpointName;
  readonly stream: boolean;
  /** The model id as the caller wrote it. */
  readonly requestedModel: string;
  readonly dataClass: string;
  /** The request's first decision, whose id the answer's header carries. */
  readonly decisionId: string;
  readonly sessionId: string | null;
  readonly turnId: string | null;
  /** The count of assistant messages after the last user message in the POST. */
  readonly stepNumber: number | null;
  /** At most 33 names of at most 64 characters each. Further names are counted under `…`. */
  readonly droppedFields: DroppedFields;
  /** The request's `metadata`, kept as long as the Step. Empty if the policy keeps only digests. */
  readonly metadata: Metadata;
  readonly openedAt: number;
  /** Null while in flight, as is `outcome`. */
  readonly settledAt: number | null;
  readonly outcome: StepOutcome | null;
  readonly reason: string | null;
  readonly finishReason: string | null;
  readonly attempts: readonly Attempt[];
  /** SHA-256 in hex of its `Idempotency-Key`; null without one. */
  readonly idempotencyKeySha256: string | null;
  /**
   * The Step that this one probably repeats: an SDK sent the request as a retry without an `Idempotency-Key`, and the same
   * key had sent the same messages to the same model within the minute before. Only a hint; null for none.
   */
  readonly retryOf: string | null;
  /** Heads of the transcript chain in hex: after the Step's request, and after its reply. */
  readonly head: string | null;
  readonly replyHead: string | null;
}
