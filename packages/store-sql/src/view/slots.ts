/**
 * A cache of rows by two names, such as organization and id. Each pair of names has a few slots. If they are full, a
 * further row replaces an earlier one.
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

/** The last characters of a name differ the most. */
const tellingCharacters = 8;

/**
 * Creates 1,024 times `ways` slots, and each pair of names has `ways` of them. With four, the rows of a thousand Steps in
 * flight rarely replace each other. A Map with so many changes would be rebuilt every few dozen of them, and its old copy
 * would keep the former rows alive.
 */
export function createSlots<Row>(ways: number): Slots<Row> {
  const slots: (Slot<Row> | null)[] = Array.from({ length: 1_024 * ways }, () => null);
  let due = 0;
  const find = (group: string, id: string): number => {
    const first = placeOf(group, id) * ways;
    for (let at = first; at < first + ways; at++) {
      const slot = slots[at];
      if (slot?.id === id && slot.group === group) return at;
    }
    return -1;
  };
  const free = (group: string, id: string): number => {
    const first = placeOf(group, id) * ways;
    for (let at = first; at < first + ways; at++) if (!slots[at]) return at;
    due = (due + 1) % ways;
    return first + due;
  };
  return {
    get: (group, id) => slots[find(group, id)]?.row ?? null,
    set(group, id, row) {
      const at = find(group, id);
      slots[at < 0 ? free(group, id) : at] = { group, id, row };
    },
    remove(group, id) {
      const at = find(group, id);
      if (at >= 0) slots[at] = null;
    },
    clear() {
      slots.fill(null);
    },
  };
}

/** A value of 10 bits. */
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
