/** A class's place in the configured order; one that is no longer configured counts as the most sensitive there is. */
export function rankOf(dataClasses: readonly string[], dataClass: string): number {
  const rank = dataClasses.indexOf(dataClass);
  return rank < 0 ? dataClasses.length - 1 : rank;
}

/** The most sensitive of some classes, as one that is configured; null for none. */
export function highestClass(
  dataClasses: readonly string[],
  some: readonly string[],
): string | null {
  const ranks = some.map((dataClass) => rankOf(dataClasses, dataClass));
  return dataClasses[Math.max(-1, ...ranks)] ?? null;
}
