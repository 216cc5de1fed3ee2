import { rankOf } from "../domain/data-class.ts";
import { GatewayError } from "../errors/gateway-error.ts";

/** Checks a default and a minimum class: both must be known, and the default must not be lower. */
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

/** Checks that a class is configured. */
export function requireClass(dataClasses: readonly string[], name: string, value: unknown): string {
  const known = dataClasses.find((dataClass) => dataClass === value);
  if (known !== undefined) return known;
  throw new GatewayError("invalid_argument", `${name} must be one of ${dataClasses.join(", ")}.`, {
    param: name,
  });
}

/** The more sensitive of two classes. */
export function higher(dataClasses: readonly string[], a: string, b: string): string {
  return rankOf(dataClasses, a) >= rankOf(dataClasses, b) ? a : b;
}
