import { formatUsd } from "@tollgate/core";

/** Formats nanodollars as dollars. Null means an unknown price, and stays null. */
export function usd(nanoUsd: number | null): string | null {
  return nanoUsd === null ? null : formatUsd(nanoUsd);
}
