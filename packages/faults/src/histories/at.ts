/** The element with this number, wrapping around. */
export function at<Item>(items: readonly Item[], number: number): Item | undefined {
  return items[number % items.length];
}
