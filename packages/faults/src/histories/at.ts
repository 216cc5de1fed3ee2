/** The one a number names, counting round. */
export function at<Item>(items: readonly Item[], number: number): Item | undefined {
  return items[number % items.length];
}
