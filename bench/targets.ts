/** A measured process between the load and the upstream. */
export interface Target {
  /** The name for `--targets`. */
  readonly name: string;
  readonly file: string;
  /** Where it records each answer; null if it records none. */
  readonly store: "memory" | "sqlite" | "postgres" | null;
  /** Whether it is another product, which only the standard table measures. */
  readonly isPeer: boolean;
}

/** The first message of a target: its address and the headers for requests. */
export interface Ready {
  readonly origin: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** A question to a target. Targets without a store answer null. */
export type TargetOrder =
  /** Answers with the number of its activity records. */
  | { readonly order: "records" }
  /** Attaches an observer or none, and answers with the secrets of this number of new keys. */
  | { readonly order: "prepare"; readonly keys: number; readonly observed: boolean };

const tollgate = { file: "./targets/tollgate.ts", isPeer: false };

export const targets: readonly Target[] = [
  { name: "bare", file: "./targets/bare.ts", store: null, isPeer: false },
  { name: "journal", file: "./targets/journal.ts", store: null, isPeer: false },
  { name: "memory", store: "memory", ...tollgate },
  { name: "sqlite", store: "sqlite", ...tollgate },
  { name: "postgres", store: "postgres", ...tollgate },
  { name: "portkey", file: "./targets/portkey.ts", store: null, isPeer: true },
  { name: "llmops", file: "./targets/llmops.ts", store: null, isPeer: true },
];
