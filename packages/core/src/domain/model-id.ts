/**
 * A model identifier `<gateway>/<vendor>/<model>`. The model's own name may contain `/`. Ids are compared
 * character by character, but patterns that select them ignore ASCII case.
 */
export interface ModelId {
  readonly gateway: string;
  readonly vendor: string;
  readonly model: string;
}

/** Plain names that clients may send instead of longer model ids, each with the id that it leads to. */
export type ModelAliases = Readonly<Record<string, string>>;

const maxLength = 255;
/** Three or more segments without spaces, control characters, unassigned characters and lone surrogates. */
const segments = /^[^\s/\p{C}]+(?:\/[^\s/\p{C}]+){2,}$/u;
/** A segment `.` or `..`, which resolving a path would remove. */
const dots = /(?:^|\/)\.\.?(?:\/|$)/;

/**
 * Reads a model identifier, or a pattern of one. Null if it has fewer than three parts or more than 255 characters, or if a
 * segment is empty, `.` or `..`, or contains white space or a control character.
 */
export function parseModelId(text: string): ModelId | null {
  if (text.length > maxLength || !segments.test(text) || dots.test(text)) return null;
  return splitModelId(text);
}

/** The three parts of an id that is known to be well-formed. */
export function splitModelId(text: string): ModelId {
  const first = text.indexOf("/");
  const second = text.indexOf("/", first + 1);
  return {
    gateway: text.slice(0, first),
    vendor: text.slice(first + 1, second),
    model: text.slice(second + 1),
  };
}

export function formatModelId(id: ModelId): string {
  return `${id.gateway}/${id.vendor}/${id.model}`;
}
