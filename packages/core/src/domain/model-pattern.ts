import { type ModelId, parseModelId } from "./model-id.ts";
import { listed, matchesGlob, type OneOrMany } from "./pattern.ts";

/** A pattern is read like an id: `*` matches inside its part, and the model part may hold `/`. */
export function matchesModel(pattern: string, model: ModelId): boolean {
  const parts = parseModelId(pattern);
  return (
    parts !== null &&
    matchesGlob(parts.gateway, model.gateway) &&
    matchesGlob(parts.vendor, model.vendor) &&
    matchesGlob(parts.model, model.model)
  );
}

/** Whether one of the patterns matches; no patterns match everything. */
export function selectsModel(patterns: OneOrMany | null | undefined, model: ModelId): boolean {
  return patterns == null || listed(patterns).some((pattern) => matchesModel(pattern, model));
}
