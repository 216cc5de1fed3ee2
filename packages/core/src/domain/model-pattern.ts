import { type ModelId, splitModelId } from "./model-id.ts";
import { listed, matchesGlob, type OneOrMany } from "./pattern.ts";

/**
 * A pattern has the parts of an id, and `*` matches only inside its part. The model part may contain `/`. ASCII case is
 * ignored, because upstreams may ignore it, and a rule must apply to every spelling that reaches the model. Patterns are
 * validated when they are configured, so this doesn't validate them again for every request.
 */
export function matchesModel(pattern: string, model: ModelId): boolean {
  const parts = splitModelId(pattern);
  return (
    matchesGlob(parts.gateway, model.gateway) &&
    matchesGlob(parts.vendor, model.vendor) &&
    matchesGlob(parts.model, model.model)
  );
}

/** Whether one of the patterns matches. Without patterns, everything matches. */
export function selectsModel(patterns: OneOrMany | null | undefined, model: ModelId): boolean {
  return patterns == null || listed(patterns).some((pattern) => matchesModel(pattern, model));
}
