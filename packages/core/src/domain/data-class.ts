/** A class's position in the configured order. One that is no longer configured counts as the most sensitive. */
export function rankOf(dataClasses: readonly string[], dataClass: string): number {
  const rank = dataClasses.indexOf(dataClass);
  return rank < 0 ? dataClasses.length - 1 : rank;
}

/** The most sensitive of some classes, always a configured one. Null for an empty list. */
export function highestClass(
  dataClasses: readonly string[],
  some: readonly string[],
): string | null {
  const ranks = some.map((dataClass) => rankOf(dataClasses, dataClass));
  return dataClasses[Math.max(-1, ...ranks)] ?? null;
}
