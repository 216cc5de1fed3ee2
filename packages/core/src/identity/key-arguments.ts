import { rankOf } from "../domain/data-class.ts";
import { parseModelId } from "../domain/model-id.ts";
import { GatewayError } from "../errors/gateway-error.ts";

/** The most patterns of one allowlist: every request is held against them. */
const mostPatterns = 1_000;

/** A default and a minimum class, both known, the default not below. */
export function requireClasses(
  dataClasses: readonly string[],
  classes: { readonly defaultDataClass: string; readonly minimumDataClass: string },
): { readonly defaultDataClass: string; readonly minimumDataClass: string } {
  const { defaultDataClass, minimumDataClass } = classes;
  requireClass(dataClasses, "defaultDataClass", defaultDataClass);
  requireClass(dataClasses, "minimumDataClass", minimumDataClass);
  if (dataClasses.indexOf(defaultDataClass) < dataClasses.indexOf(minimumDataClass)) {
    throw new GatewayError(
      "invalid_argument",
      "defaultDataClass must not be below minimumDataClass.",
      { param: "defaultDataClass" },
    );
  }
  return { defaultDataClass, minimumDataClass };
}

/** A class of the configured order. */
export function requireClass(dataClasses: readonly string[], name: string, value: unknown): string {
  const known = dataClasses.find((dataClass) => dataClass === value);
  if (known !== undefined) return known;
  throw new GatewayError("invalid_argument", `${name} must be one of ${dataClasses.join(", ")}.`, {
    param: name,
  });
}

/** Model patterns, or null for no limit. */
export function requireModels(models: unknown): readonly string[] | null {
  if (models === null) return null;
  if (!Array.isArray(models) || models.length > mostPatterns) {
    throw wrongModels(`models must be a list of at most ${mostPatterns} model patterns.`);
  }
  return models.map((pattern: unknown) => {
    if (typeof pattern === "string" && parseModelId(pattern) !== null) return pattern;
    const said = typeof pattern === "string" ? pattern.slice(0, 255) : `A ${typeof pattern}`;
    throw wrongModels(`${said} is not a model pattern <gateway>/<vendor>/<model>.`);
  });
}

/** The more sensitive of two classes. */
export function higher(dataClasses: readonly string[], a: string, b: string): string {
  return rankOf(dataClasses, a) >= rankOf(dataClasses, b) ? a : b;
}

function wrongModels(message: string): GatewayError {
  return new GatewayError("invalid_argument", message, { param: "models" });
}
