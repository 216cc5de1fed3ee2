import type { Model } from "./scenarios.ts";

/** The requests that a worker of the load generator sends, one after the other. */
export type Workload =
  /** Single requests of about 1 KB, or of another size with text that isn't ASCII. */
  | { readonly kind: "single"; readonly model: Model; readonly nonAsciiBytes?: number }
  /** Conversations that grow by a question and an answer each turn, and start again at so many messages. */
  | { readonly kind: "growing"; readonly messages: number }
  /**
   * Conversations that begin with so many messages and go on for 50 turns. `respelled` writes the same history in other
   * bytes each turn.
   */
  | {
      readonly kind: "long";
      readonly messages: number;
      readonly endpoint: Endpoint;
      readonly respelled: boolean;
    }
  /** A question that is answered by a tool call, and the tool's result. */
  | { readonly kind: "tools" }
  /** Five responses, each of which names the one before. */
  | { readonly kind: "responses" };

export type Endpoint = "chat/completions" | "responses";

/** An order for the load generator. */
export interface LoadOrder {
  /** The workers send to these in turn. */
  readonly origins: readonly string[];
  /** What comes before the endpoint: `/v1`. */
  readonly base: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Keys that take turns, in place of the one in the headers. */
  readonly secrets: readonly string[];
  readonly workload: Workload;
  readonly concurrency: number;
  /** The first requests start evenly over this, so that streams do not run in step. */
  readonly spreadSeconds: number;
  /** No request starts after this; those in flight are waited for. */
  readonly seconds: number;
  /** Whether 503 may be an answer: it is counted apart then. */
  readonly toleratesUnavailable: boolean;
}

/** What it measured; times in milliseconds. */
export interface LoadReport {
  readonly answers: number;
  /** Answers that were 503, where they are tolerated. */
  readonly unavailable: number;
  /** Answers that were not right, described; it gives up after ten. */
  readonly wrong: readonly string[];
  readonly seconds: number;
  /** Of all answers; of a long conversation without those to its first request, which have a median of their own. */
  readonly p50: number;
  readonly p99: number;
  readonly openingP50: number;
  readonly firstByteP50: number;
}
