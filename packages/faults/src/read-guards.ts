/** One guard, and how it is taken out. */
export interface Guard {
  /** The row of the fault matrix that it is for. */
  readonly row: string;
  /** What it does. */
  readonly guard: string;
  readonly file: string;
  /** Stands in the file exactly once. */
  readonly find: string;
  readonly replace: string;
  /** How the names of the tests begin that must fail without it. */
  readonly test: string;
}

const fields = ["row", "guard", "file", "find", "replace", "test"];

/** Reads the list of guards. */
export function readGuards(json: string): readonly Guard[] {
  const list: unknown = JSON.parse(json);
  if (!Array.isArray(list)) throw new Error("the list of guards is no list");
  return list.map((entry: unknown) => {
    if (isGuard(entry)) return entry;
    throw new Error(`this is no guard: ${JSON.stringify(entry)}`);
  });
}

function isGuard(value: unknown): value is Guard {
  return (
    typeof value === "object" &&
    value !== null &&
    fields.every((name) => typeof Reflect.get(value, name) === "string")
  );
}
