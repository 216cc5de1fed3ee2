import type { Json } from "../kernel/stable-json.ts";
import type { EmbeddingVector } from "./embedding.ts";
import type { StateFields } from "./provider-state.ts";
import type { UsageDetails } from "./usage.ts";

/** Why the model stopped. */
export type FinishReason = "stop" | "length" | "tool_calls" | "content_filter";

/** Why the model refused, in the provider's words. */
export interface Refusal {
  readonly category: string | null;
  readonly explanation: string | null;
}

/**
 * Token counts as a provider reports them. A count it did not report is absent, which isn't the same as 0. Details are
 * disjoint parts of the prompt or completion tokens, even if the provider itself adds them up differently.
 */
export interface UsageReport extends UsageDetails {
  readonly promptTokens?: number;
  readonly completionTokens?: number;
  /** The cost that the provider reports, in nanodollars. */
  readonly costNanoUsd?: number;
  /** The service tier the call was served at, as the provider names it. */
  readonly serviceTier?: string;
}

/** Shown next to the text of an answer, but not part of the conversation. */
export type ShownField = "annotations" | "images";

/** The names that providers use for the text of a message's reasoning. */
export type ReasoningField = "reasoning_content" | "reasoning";

/**
 * An event of a model's answer. A provider yields these in order. Every form of the answer (stream or plain body, Chat
 * Completions or Responses) is made from them.
 */
export type CompletionEvent =
  /** The request is about to be sent, to this host, with this SHA-256 of its body in hex. Always first, once per call. */
  | { readonly type: "request-sent"; readonly host: string; readonly bodySha256: string }
  /** The provider began to answer. */
  | {
      readonly type: "answer-started";
      readonly providerRequestId?: string;
      readonly providerModel?: string;
      /** The configuration that the provider reports. */
      readonly systemFingerprint?: string;
    }
  | { readonly type: "text-delta"; readonly text: string }
  /** `field` is the name under which the provider wants the reasoning back. Absent if it doesn't want the text back. */
  | { readonly type: "reasoning-delta"; readonly text: string; readonly field?: ReasoningField }
  | { readonly type: "refusal-delta"; readonly text: string }
  /** A tool call begins. `index` counts from 0 in order of appearance. Calls may overlap. */
  | {
      readonly type: "tool-call-started";
      readonly index: number;
      readonly id: string;
      readonly name: string;
    }
  | { readonly type: "tool-call-delta"; readonly index: number; readonly arguments: string }
  /**
   * State that the provider wants back with this message, or with its tool call `index`, such as a signature. Its fields
   * have the provider's own names. Lists and objects may come in pieces.
   *
   * Anthropic's thinking is `thinking_blocks`: entries `{type: "thinking", index, thinking, signature}`, in pieces that share
   * `type` and `index`, and `{type: "redacted_thinking", index, data}`, whole. `index` is how many other thinking blocks, runs
   * of text and tool calls of the answer come before it. Each piece comes right before the `reasoning-delta` with its text.
   */
  | { readonly type: "state"; readonly index?: number; readonly fields: StateFields }
  /** Sources that the provider cites, or images that it made, shown next to the text. */
  | { readonly type: "shown"; readonly name: ShownField; readonly entries: readonly Json[] }
  /** Log probabilities as the provider gave them, for the text around them. */
  | { readonly type: "logprobs"; readonly logprobs: Json }
  /** The vector of the request's input `index`, counted from 0. Each input of an embeddings request gets one. */
  | { readonly type: "embedding"; readonly index: number; readonly vector: EmbeddingVector }
  /** Usage so far. The last value of each field counts. */
  | { readonly type: "usage"; readonly usage: UsageReport }
  /**
   * The model stopped. `stopText` is the one of the request's stop texts that it reached, if the provider names it. The
   * answer is complete only if the provider's iteration then ends without an error.
   */
  | {
      readonly type: "finish";
      readonly reason: FinishReason;
      readonly stopText?: string;
      readonly refusal?: Refusal;
    };
