import { type ModelId, splitModelId } from "./model-id.ts";
import { listed, matchesGlob, type OneOrMany } from "./pattern.ts";

/**
 * A pattern is read like an id: `*` matches inside its part, and the model part may hold `/`. ASCII case is ignored: an
 * upstream may ignore it, and a rule must hold for every spelling that reaches the model. Patterns are checked where
 * they are written, so this doesn't check them again for every request.
 */
export function matchesModel(pattern: string, model: ModelId): boolean {
  const parts = splitModelId(pattern);
  return (
    matchesGlob(parts.gateway, model.gateway) &&
    matchesGlob(parts.vendor, model.vendor) &&
    matchesGlob(parts.model, model.model)
  );
}

/** Whether one of the patterns matches; no patterns match everything. */
export function selectsModel(patterns: OneOrMany | null | undefined, model: ModelId): boolean {
  return patterns == null || listed(patterns).some((pattern) => matchesModel(pattern, model));
}
