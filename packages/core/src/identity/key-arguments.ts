import { rankOf } from "../domain/data-class.ts";
import { invalidArgument } from "../errors/gateway-error.ts";

/** Checks a default and a minimum class: both must be known, and the default must not be lower. */
export function requireClasses(
  dataClasses: readonly string[],
  classes: { readonly defaultDataClass: string; readonly minimumDataClass: string },
): { readonly defaultDataClass: string; readonly minimumDataClass: string } {
  const { defaultDataClass, minimumDataClass } = classes;
  requireClass(dataClasses, "defaultDataClass", defaultDataClass);
  requireClass(dataClasses, "minimumDataClass", minimumDataClass);
  if (dataClasses.indexOf(defaultDataClass) < dataClasses.indexOf(minimumDataClass)) {
    throw invalidArgument(
      "defaultDataClass",
      "defaultDataClass must not be below minimumDataClass.",
    );
  }
  return { defaultDataClass, minimumDataClass };
}

/** Checks that a class is configured. */
export function requireClass(dataClasses: readonly string[], name: string, value: unknown): string {
  const known = dataClasses.find((dataClass) => dataClass === value);
  if (known !== undefined) return known;
  throw invalidArgument(name, `${name} must be one of ${dataClasses.join(", ")}.`);
}

/** The more sensitive of two classes. */
export function higher(dataClasses: readonly string[], a: string, b: string): string {
  return rankOf(dataClasses, a) >= rankOf(dataClasses, b) ? a : b;
}
