/** The names of a table's members, in order. A list made from an exhaustive table is exhaustive, too. */
export function namesOf<Name extends string>(
  table: Readonly<Record<Name, unknown>>,
): readonly Name[] {
  return Object.keys(table).filter((name): name is Name => Object.hasOwn(table, name));
}
