import { parseModelId } from "../domain/model-id.ts";
import { GatewayError } from "../errors/gateway-error.ts";

/** A default and a minimum class, both known, the default not below. */
export function requireClasses(
  dataClasses: readonly string[],
  classes: { readonly defaultDataClass: string; readonly minimumDataClass: string },
): { readonly defaultDataClass: string; readonly minimumDataClass: string } {
  for (const [name, value] of Object.entries(classes)) {
    if (!dataClasses.includes(value)) {
      throw new GatewayError(
        "invalid_argument",
        `${name} must be one of ${dataClasses.join(", ")}.`,
        { param: name },
      );
    }
  }
  if (
    dataClasses.indexOf(classes.defaultDataClass) < dataClasses.indexOf(classes.minimumDataClass)
  ) {
    throw new GatewayError(
      "invalid_argument",
      "defaultDataClass must not be below minimumDataClass.",
      { param: "defaultDataClass" },
    );
  }
  return classes;
}

/** Model patterns, or null for no limit. */
export function requireModels(models: readonly string[] | null): readonly string[] | null {
  const wrong = models?.find(
    (pattern) => typeof pattern !== "string" || parseModelId(pattern) === null,
  );
  if (wrong === undefined) return models;
  throw new GatewayError(
    "invalid_argument",
    `${String(wrong)} is not a model pattern <gateway>/<vendor>/<model>.`,
    { param: "models" },
  );
}

/** The more sensitive of two classes. */
export function higher(dataClasses: readonly string[], a: string, b: string): string {
  return dataClasses.indexOf(a) >= dataClasses.indexOf(b) ? a : b;
}
