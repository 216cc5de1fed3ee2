/** A model identifier `<gateway>/<vendor>/<model>`; the model's own name may itself contain `/` (section 1). */
export interface ModelId {
  readonly gateway: string;
  readonly vendor: string;
  readonly model: string;
}

const longest = 255;

/** Reads a model identifier; null when one of its three parts is missing or it is longer than 255 characters. */
export function parseModelId(text: string): ModelId | null {
  const first = text.indexOf("/");
  const second = text.indexOf("/", first + 1);
  if (first < 1 || second <= first + 1 || second === text.length - 1 || text.length > longest)
    return null;
  return {
    gateway: text.slice(0, first),
    vendor: text.slice(first + 1, second),
    model: text.slice(second + 1),
  };
}

export function formatModelId(id: ModelId): string {
  return `${id.gateway}/${id.vendor}/${id.model}`;
}
