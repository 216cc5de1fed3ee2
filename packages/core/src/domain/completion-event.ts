import type { Json } from "../kernel/stable-json.ts";
import type { StateFields } from "./provider-state.ts";
import type { UsageDetails } from "./usage.ts";

/** Why the model stopped. */
export type FinishReason = "stop" | "length" | "tool_calls" | "content_filter";

/**
 * Token counts as a provider reports them; a count it did not report is absent, and 0 is a count. Details are disjoint
 * parts of the prompt or completion tokens, whichever way the provider itself adds them up.
 */
export interface UsageReport extends UsageDetails {
  readonly promptTokens?: number;
  readonly completionTokens?: number;
  /** What the provider says the call cost, in nanodollars. */
  readonly costNanoUsd?: number;
  /** The service tier the call was served at, as the provider names it. */
  readonly serviceTier?: string;
}

/** What a provider shows next to the text of its answer; no part of the conversation. */
export type ShownField = "annotations" | "images";

/** What providers call the text of a message's reasoning. */
export type ReasoningField = "reasoning_content" | "reasoning";

/**
 * What happens while a model answers. A provider yields these in order; every presentation (a stream, a plain body,
 * Chat Completions, Responses) is made from them.
 */
export type CompletionEvent =
  /** The request is about to leave: its host and the SHA-256 of its body in hex. First, once per call. */
  | { readonly type: "request-sent"; readonly host: string; readonly bodySha256: string }
  /** The provider began to answer, with its own id for the answer where it gives one. */
  | {
      readonly type: "answer-started";
      readonly providerRequestId?: string;
      readonly providerModel?: string;
      /** The configuration it says it answered with. */
      readonly systemFingerprint?: string;
    }
  | { readonly type: "text-delta"; readonly text: string }
  /** `field` is the name the provider wants the reasoning back under; absent where it does not want the text back. */
  | { readonly type: "reasoning-delta"; readonly text: string; readonly field?: ReasoningField }
  | { readonly type: "refusal-delta"; readonly text: string }
  /** A tool call begins; `index` counts from 0 in order of appearance, and calls may overlap. */
  | {
      readonly type: "tool-call-started";
      readonly index: number;
      readonly id: string;
      readonly name: string;
    }
  | { readonly type: "tool-call-delta"; readonly index: number; readonly arguments: string }
  /**
   * State that the provider wants back with this message, or with its tool call `index`, such as a signature: under the
   * names it uses. Lists and objects may come in pieces.
   */
  | { readonly type: "state"; readonly index?: number; readonly fields: StateFields }
  /** What the provider shows next to the text: sources that it cites, or images that it made. */
  | { readonly type: "shown"; readonly name: ShownField; readonly entries: readonly Json[] }
  /** Log probabilities as the provider gave them, for the text around them. */
  | { readonly type: "logprobs"; readonly logprobs: Json }
  /** Usage so far; the last value of each field wins. */
  | { readonly type: "usage"; readonly usage: UsageReport }
  /** The model stopped. The answer is complete only when the provider's iteration then ends without an error. */
  | { readonly type: "finish"; readonly reason: FinishReason };
