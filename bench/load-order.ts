import type { Model } from "./scenarios.ts";

/** The requests that a worker of the load generator sends, one after the other. */
export type Workload =
  /** Single requests of about 1 KB, or of another size with text that isn't ASCII. */
  | { readonly kind: "single"; readonly model: Model; readonly nonAsciiBytes?: number }
  /** Conversations that grow by a question and an answer each turn, and start again at this number of messages. */
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
  /** A question, a tool call as its answer, and the result of the tool. */
  | { readonly kind: "tools" }
  /** Five responses, each of which names the one before. */
  | { readonly kind: "responses" };

export type Endpoint = "chat/completions" | "responses";

/** An order for the load generator. */
export interface LoadOrder {
  /** The workers send to these in turn. */
  readonly origins: readonly string[];
  /** The path before the endpoint: `/v1`. */
  readonly base: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Keys to use in turn, instead of the one in the headers. */
  readonly secrets: readonly string[];
  readonly workload: Workload;
  readonly concurrency: number;
  /** The first requests start evenly over this time, so streams do not run in step. */
  readonly spreadSeconds: number;
  /** No request starts after this time; the worker waits for those in flight. */
  readonly seconds: number;
  /** Whether 503 is a valid answer. It is counted separately. */
  readonly toleratesUnavailable: boolean;
}

/** The measurements; times in milliseconds. */
export interface LoadReport {
  readonly answers: number;
  /** Answers with status 503, if valid. */
  readonly unavailable: number;
  /** Descriptions of wrong answers. The load generator stops after ten. */
  readonly wrong: readonly string[];
  readonly seconds: number;
  /** Of all answers, except those to the first request of a long conversation, which have a separate median. */
  readonly p50: number;
  readonly p99: number;
  readonly openingP50: number;
  readonly firstByteP50: number;
}
