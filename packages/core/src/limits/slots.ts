/** Limits concurrent work, in total and per owner. */
export interface Slots {
  /** Takes slots, 1 unless told otherwise; false if too few are free, or the owner may not have them. */
  take(owner: string, count?: number): boolean;
  release(owner: string, count?: number): void;
  /** How many are taken. */
  taken(): number;
}

/** The slots of one piece of work that needs more and more of them. */
export class SlotShare {
  readonly #slots: Slots;
  readonly #owner: string;
  #count = 0;

  constructor(slots: Slots, owner: string) {
    this.#slots = slots;
    this.#owner = owner;
  }

  /** Takes more slots; false if it can't have them. */
  grow(count: number): boolean {
    if (!this.#slots.take(this.#owner, count)) return false;
    this.#count += count;
    return true;
  }

  /** Releases all of them. Safe to call twice. */
  release(): void {
    this.#slots.release(this.#owner, this.#count);
    this.#count = 0;
  }
}

export function createSlots(bounds: { readonly max: number; readonly maxPerOwner: number }): Slots {
  const taken = new Map<string, number>();
  let all = 0;
  return {
    take(owner, count = 1) {
      const own = taken.get(owner) ?? 0;
      if (all + count > bounds.max || own + count > bounds.maxPerOwner) return false;
      all += count;
      if (count > 0) taken.set(owner, own + count);
      return true;
    },
    release(owner, count = 1) {
      const own = taken.get(owner) ?? 0;
      if (own === 0) return;
      all -= count;
      if (own === count) taken.delete(owner);
      else taken.set(owner, own - count);
    },
    taken: () => all,
  };
}
