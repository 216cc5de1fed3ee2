/** The time range of a partition's Steps, in milliseconds. `until` is excluded. */
export interface PartitionRange {
  readonly from: number;
  readonly until: number;
}

const day = 86_400_000;
/** Partitions that cover the retention. Each costs every request a little. */
const parts = 6;
/** Partitions that exist ahead of the current one. */
const ahead = 2;

/** A time as a bound of ids: a UUID of version 7 begins with its time. */
export function boundAt(time: number): string {
  const hex = time.toString(16).padStart(12, "0");
  return `${hex.slice(0, 8)}-${hex.slice(8)}`;
}

/** Parses a partition's bounds as the server prints them. Null for the default partition. */
export function rangeOf(bounds: string): PartitionRange | null {
  const match =
    /^FOR VALUES FROM \('([0-9a-f]{8}-[0-9a-f]{4})'\) TO \('([0-9a-f]{8}-[0-9a-f]{4})'\)$/.exec(
      bounds,
    );
  return match?.[1] && match[2] ? { from: timeAt(match[1]), until: timeAt(match[2]) } : null;
}

function timeAt(bound: string): number {
  return Number.parseInt(bound.replace("-", ""), 16);
}

/** A partition is named after its first day. */
export function partitionName({ from }: PartitionRange): string {
  return `steps_${new Date(from).toISOString().slice(0, 10).replaceAll("-", "")}`;
}

/**
 * The partitions to create ahead of time. None begins within a day, because clocks that run ahead may already have put
 * Steps of that day in the default partition.
 */
export function missingRanges(
  known: readonly PartitionRange[],
  { now, keep }: { readonly now: number; readonly keep: number },
): readonly PartitionRange[] {
  const width = Math.max(1, Math.ceil(keep / parts / day)) * day;
  const soonest = (Math.floor(now / day) + 2) * day;
  const missing: PartitionRange[] = [];
  let from = Math.max(soonest, ...known.map(({ until }) => until));
  for (; from < now + ahead * width; from += width) missing.push({ from, until: from + width });
  return missing;
}
