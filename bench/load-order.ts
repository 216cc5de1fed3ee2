import type { Model } from "./scenarios.ts";

/** What the load generator is asked to do. */
export interface LoadOrder {
  readonly origin: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly model: Model;
  readonly prompt: string;
  readonly concurrency: number;
  /** The first requests start evenly over this, so that streams do not run in step. */
  readonly spreadSeconds: number;
  /** No request starts after this; those in flight are waited for. */
  readonly seconds: number;
}

/** What it measured; times in milliseconds. */
export interface LoadReport {
  readonly answers: number;
  /** Answers that were not right, described; it gives up after ten. */
  readonly wrong: readonly string[];
  readonly seconds: number;
  readonly p50: number;
  readonly p99: number;
  readonly firstByteP50: number;
}
