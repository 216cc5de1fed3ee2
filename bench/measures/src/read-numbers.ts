import { parseArgs } from "node:util";

/** Reads whole numbers from arguments such as `--name value`, with defaults. */
export function readNumbers<Name extends string>(
  defaults: Readonly<Record<Name, number>>,
): Readonly<Record<Name, number>> {
  const names = Object.keys(defaults);
  const { values } = parseArgs({
    options: Object.fromEntries(names.map((name) => [name, { type: "string" as const }])),
  });
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
