import { parseArgs } from "node:util";

/** Reads `--name value` arguments. Rejects other names. */
export function readTexts(names: readonly string[]): Readonly<Record<string, string | undefined>> {
  const options = Object.fromEntries(names.map((name) => [name, { type: "string" as const }]));
  return parseArgs({ options }).values;
}

/**
 * Reads whole numbers from `--name value` arguments, with defaults. `others` are the names of arguments that aren't
 * numbers.
 */
export function readNumbers<Name extends string>(
  defaults: Readonly<Record<Name, number>>,
  others: readonly string[] = [],
): Readonly<Record<Name, number>> {
  const names = Object.keys(defaults);
  const values = readTexts([...names, ...others]);
  const numbers: Record<Name, number> = { ...defaults };
  for (const name in defaults) {
    const value = values[name];
    if (value === undefined) continue;
    const number = Number(value);
    if (!Number.isSafeInteger(number) || number < 0)
      throw new Error(`--${name} must be a whole number, not ${value}.`);
    numbers[name] = number;
  }
  return numbers;
}
