/**
 * Things that come and go with every request, each in a slot of an array. A Set or Map with such traffic is rebuilt every
 * few dozen times, and the one that is left behind keeps alive what was in it: some 10 KB of every request.
 */
export interface InFlight<Item> {
  /** Returns the item's slot, which is what removes it. */
  add(item: Item): number;
  /** To be called once for each slot. */
  remove(slot: number): void;
  count(): number;
  all(): readonly Item[];
}

/** An empty array of slots. */
export function createInFlight<Item extends object>(): InFlight<Item> {
  const slots: (Item | null)[] = [];
  const free: number[] = [];
  return {
    add(item) {
      const slot = free.pop() ?? slots.length;
      slots[slot] = item;
      return slot;
    },
    remove(slot) {
      slots[slot] = null;
      free.push(slot);
    },
    count: () => slots.length - free.length,
    all: () => slots.filter((item) => item !== null),
  };
}
