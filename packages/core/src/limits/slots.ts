/** Limits concurrent work, in total and per owner. */
export interface Slots {
  /** Takes a slot; false if none is free, or the owner has all it may have. */
  take(owner: string): boolean;
  release(owner: string): void;
}

export function createSlots(bounds: { readonly max: number; readonly maxPerOwner: number }): Slots {
  const taken = new Map<string, number>();
  let all = 0;
  return {
    take(owner) {
      const own = taken.get(owner) ?? 0;
      if (all >= bounds.max || own >= bounds.maxPerOwner) return false;
      all++;
      taken.set(owner, own + 1);
      return true;
    },
    release(owner) {
      const own = taken.get(owner) ?? 0;
      if (own === 0) return;
      all--;
      if (own === 1) taken.delete(owner);
      else taken.set(owner, own - 1);
    },
  };
}
