/**
 * A cache of rows by two names, such as organization and id. Each pair of names maps to one slot, and a later row
 * replaces the earlier one.
 */
export interface Slots<Row> {
  get(group: string, id: string): Row | null;
  set(group: string, id: string, row: Row): void;
  remove(group: string, id: string): void;
  clear(): void;
}

interface Slot<Row> {
  readonly group: string;
  readonly id: string;
  readonly row: Row;
}

/** The number of values of 10 bits. */
const count = 1024;
/** The last characters of a name differ the most. */
const tellingCharacters = 8;

/**
 * A Map with so many changes would be rebuilt every few dozen of them, and its old copy would keep the former rows
 * alive.
 */
export function createSlots<Row>(): Slots<Row> {
  const slots: (Slot<Row> | null)[] = Array.from({ length: count }, () => null);
  const find = (group: string, id: string): Slot<Row> | null => {
    const slot = slots[placeOf(group, id)];
    return slot?.id === id && slot.group === group ? slot : null;
  };
  return {
    get: (group, id) => find(group, id)?.row ?? null,
    set(group, id, row) {
      slots[placeOf(group, id)] = { group, id, row };
    },
    remove(group, id) {
      if (find(group, id)) slots[placeOf(group, id)] = null;
    },
    clear() {
      slots.fill(null);
    },
  };
}

function placeOf(group: string, id: string): number {
  const hash = hashOf(hashOf(0, group), id);
  // Consecutive names differ only in their low bits. The high bits of a product depend on all bits.
  return Math.imul(hash, 0x9e3779b1) >>> 22;
}

function hashOf(start: number, name: string): number {
  let hash = start;
  for (let at = Math.max(0, name.length - tellingCharacters); at < name.length; at++)
    hash = Math.imul(hash ^ name.charCodeAt(at), 0x01000193);
  return hash;
}
