/** A measured process between the load and the upstream. */
export interface Target {
  /** The name for `--targets`. */
  readonly name: string;
  readonly file: string;
  /** Where it keeps a record of each answer; null where it keeps none. */
  readonly store: "memory" | "sqlite" | "postgres" | null;
  /** Whether it is somebody else's, and measured in the standard table alone. */
  readonly isPeer: boolean;
}

/** What a target sends first: where it listens, and what its requests carry. */
export interface Ready {
  readonly origin: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** What a target may be asked; one without a store answers null. */
export type TargetOrder =
  /** Answers with the number of its activity records. */
  | { readonly order: "records" }
  /** Attaches an observer or none, and answers with the secrets of so many further keys. */
  | { readonly order: "prepare"; readonly keys: number; readonly observed: boolean };

const tollgate = { file: "./targets/tollgate.ts", isPeer: false };

export const targets: readonly Target[] = [
  { name: "bare", file: "./targets/bare.ts", store: null, isPeer: false },
  { name: "memory", store: "memory", ...tollgate },
  { name: "sqlite", store: "sqlite", ...tollgate },
  { name: "postgres", store: "postgres", ...tollgate },
  { name: "portkey", file: "./targets/portkey.ts", store: null, isPeer: true },
  { name: "llmops", file: "./targets/llmops.ts", store: null, isPeer: true },
];
