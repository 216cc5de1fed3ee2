/** The label of every value beyond those that got their own. */
const other = "_other";

/**
 * Returns the value itself for the first so many values, and `_other` for the rest, so that a metric can't get a series for
 * every value that somebody sends.
 */
export function boundedLabels(
  most: number,
  known: readonly string[] = [],
): (value: string) => string {
  const seen = new Set(known.slice(0, most));
  return (value) => {
    if (seen.has(value)) return value;
    if (seen.size >= most) return other;
    seen.add(value);
    return value;
  };
}

/** The name of the operation that a call is, in the conventions for generative AI. */
export function operationOf(endpoint: string | undefined): "chat" | "embeddings" {
  return endpoint === "embeddings" ? "embeddings" : "chat";
}

/** The parts of a canonical model id: the gateway, and the model as its provider knows it. */
export interface ModelParts {
  readonly gateway: string;
  readonly model: string;
}

/** Splits `openai/openai/gpt-5` into its gateway, `openai`, and its model, `gpt-5`. */
export function modelParts(id: string): ModelParts {
  const vendor = id.indexOf("/");
  const model = id.indexOf("/", vendor + 1);
  return { gateway: id.slice(0, vendor), model: id.slice(model + 1) };
}
