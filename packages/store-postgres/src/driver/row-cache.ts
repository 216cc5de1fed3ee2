/**
 * A cache of rows by two names, such as organization and id. A pair of names has four places. A further row replaces the
 * one that is due, so the rows of a thousand Steps in flight rarely replace each other.
 */
interface RowCache<Row> {
  get(group: string, id: string): Row | null;
  set(group: string, id: string, row: Row): void;
  remove(group: string, id: string): void;
  clear(): void;
}

interface Place<Row> {
  readonly group: string;
  readonly id: string;
  readonly row: Row;
}

const ways = 4;
const count = ways * 1024;
/** The last characters of an id differ the most. */
const tellingCharacters = 8;

/** An array, because a Map with so many changes would be rebuilt every few dozen of them. */
export function createRowCache<Row>(): RowCache<Row> {
  const places: (Place<Row> | null)[] = Array.from({ length: count }, () => null);
  let due = 0;
  const find = (group: string, id: string): number => {
    const first = firstPlace(id);
    for (let at = first; at < first + ways; at++) {
      const place = places[at];
      if (place?.id === id && place.group === group) return at;
    }
    return -1;
  };
  const free = (id: string): number => {
    const first = firstPlace(id);
    for (let at = first; at < first + ways; at++) if (!places[at]) return at;
    due = (due + 1) % ways;
    return first + due;
  };
  return {
    get: (group, id) => places[find(group, id)]?.row ?? null,
    set(group, id, row) {
      const at = find(group, id);
      places[at < 0 ? free(id) : at] = { group, id, row };
    },
    remove(group, id) {
      const at = find(group, id);
      if (at >= 0) places[at] = null;
    },
    clear() {
      places.fill(null);
    },
  };
}

function firstPlace(id: string): number {
  let hash = 0;
  for (let at = Math.max(0, id.length - tellingCharacters); at < id.length; at++)
    hash = Math.imul(hash ^ id.charCodeAt(at), 0x01000193);
  // Consecutive ids differ only in their low bits. The high bits of a product depend on all bits.
  return (Math.imul(hash, 0x9e3779b1) >>> 22) * ways;
}
