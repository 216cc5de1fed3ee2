/** What a JSON text may be. Members named in `freeForm` hold data of the sender's own, where any key is allowed. */
export interface JsonRules {
  /** Nesting of objects and arrays. */
  readonly depth: number;
  /** Nesting inside a free-form member, counted from that member. */
  readonly freeFormDepth: number;
  readonly freeForm: ReadonlySet<string>;
  /** Members of one object. */
  readonly keys: number;
  /** Values in the whole text: objects, arrays and everything between commas. */
  readonly values: number;
}

/** Names that touch prototypes: no member has one, outside of data of the sender's own. */
export const forbiddenKeys: ReadonlySet<string> = new Set([
  "__proto__",
  "constructor",
  "prototype",
]);

export type JsonFaultKind =
  | "depth"
  | "keys"
  | "values"
  | "duplicate-key"
  | "forbidden-key"
  | "number"
  | "surrogate";

/** The first fault of a text; `path` is where it stands, empty at the top. */
export interface JsonFault {
  readonly kind: JsonFaultKind;
  readonly path: string;
}
