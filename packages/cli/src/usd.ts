import { formatUsd } from "@tollgate/core";

/** Nanodollars as dollars for people; null, an unknown price, stays null. */
export function usd(nanoUsd: number | null): string | null {
  return nanoUsd === null ? null : formatUsd(nanoUsd);
}
