/**
 * Items that are added and removed with every request, each in a slot of an array. A Set or Map with such traffic is
 * rebuilt every few dozen changes, and its old copy keeps former items alive: several KB per request.
 */
export interface InFlight<Item> {
  /** Returns the item's slot, which removes it later. */
  add(item: Item): number;
  /** Call it once per slot. */
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
