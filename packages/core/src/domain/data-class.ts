/** A class's place in the configured order; one that is no longer configured counts as the most sensitive there is. */
export function rankOf(dataClasses: readonly string[], dataClass: string): number {
  const rank = dataClasses.indexOf(dataClass);
  return rank < 0 ? dataClasses.length - 1 : rank;
}
