import { parseModelId } from "../domain/model-id.ts";

const names = ["organization", "user", "key", "gateway", "model"];
const ownerships: readonly unknown[] = [undefined, "platform", "customer"];
const each: readonly unknown[] = [undefined, "key", "user", "organization"];

/** What is wrong with a budget's scope, as it was written. */
export function scopeProblems(scope: unknown): readonly string[] {
  if (typeof scope !== "object" || scope === null || Array.isArray(scope))
    return ["its scope must be an object of selectors"];
  const written = new Map<string, unknown>(Object.entries(scope));
  const known = [...names, "connection", "each"];
  return [
    [...written.keys()]
      .filter((name) => !known.includes(name))
      .map((name) => `its scope has no selector ${name}`),
    names
      .filter((name) => !isSelector(written.get(name)))
      .map((name) => `its ${name} must be a text or a list of texts that are not empty`),
    ownerships.includes(written.get("connection"))
      ? []
      : "its connection must be platform or customer",
    each.includes(written.get("each")) ? [] : "each must be key, user or organization",
    valuesOf(written.get("model"))
      .filter((pattern) => typeof pattern === "string" && parseModelId(pattern) === null)
      .map((pattern) => `${pattern} is not a model pattern <gateway>/<vendor>/<model>`),
  ].flat();
}

function isSelector(selector: unknown): boolean {
  if (selector === undefined) return true;
  const values = valuesOf(selector);
  return values.length > 0 && values.every((value) => typeof value === "string" && value !== "");
}

function valuesOf(selector: unknown): readonly unknown[] {
  return Array.isArray(selector) ? selector : [selector];
}
