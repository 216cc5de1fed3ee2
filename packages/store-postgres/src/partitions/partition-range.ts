/** A stretch of time that a partition holds the Steps of: milliseconds, the end apart from it. */
export interface PartitionRange {
  readonly from: number;
  readonly until: number;
}

const day = 86_400_000;
/** Into how many partitions what is kept falls: each costs every request a little. */
const parts = 6;
/** How many partitions stand ready beyond the present one. */
const ahead = 2;

/** The partition that a Step with this id would be in, as the lower bound that begins it: ids of version 7 begin with their time. */
export function boundAt(time: number): string {
  const hex = time.toString(16).padStart(12, "0");
  return `${hex.slice(0, 8)}-${hex.slice(8)}`;
}

/** The stretch of a partition's bounds, as the server describes them; null for the rest, which has none. */
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

/** The name of a partition: by the day it begins with. */
export function partitionName({ from }: PartitionRange): string {
  return `steps_${new Date(from).toISOString().slice(0, 10).replaceAll("-", "")}`;
}

/**
 * The partitions to make so that there is room for what comes: none begins within a day, for until then clocks that run
 * ahead may have put Steps with the rest.
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
