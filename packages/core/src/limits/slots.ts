/** A bounded number of things at once. */
export interface Slots {
  /** Takes a slot; false when all are taken. */
  take(): boolean;
  release(): void;
}

export function createSlots(most: number): Slots {
  let taken = 0;
  return {
    take: () => taken < most && ++taken > 0,
    release: () => {
      taken--;
    },
  };
}
