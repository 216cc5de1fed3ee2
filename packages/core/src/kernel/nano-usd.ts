/** One US dollar in nanodollars, the unit of all amounts. */
export const NANO_PER_USD = 1_000_000_000;

const decimal = /^(\d{1,15})(?:\.(\d{1,20}))?$/;

/**
 * Reads US dollars (a number or a decimal string) as a whole number of nanodollars, exactly. Null if the amount is
 * negative, not finite, finer than a nanodollar or too large to count safely.
 */
export function parseUsd(amount: number | string): number | null {
  const text = typeof amount === "number" ? plain(amount) : amount;
  const match = decimal.exec(text);
  if (!match) return null;
  const fraction = (match[2] ?? "").replace(/0{1,20}$/, "");
  if (fraction.length > 9) return null;
  const nano = BigInt(match[1] ?? "0") * 1_000_000_000n + BigInt(fraction.padEnd(9, "0"));
  return nano <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(nano) : null;
}

/** A number without an exponent: JavaScript writes 1e-7, this writes 0.0000001. */
function plain(value: number): string {
  const text = String(value);
  if (!text.includes("e-")) return text;
  const written = value.toFixed(20).replace(/0{1,20}$/, "");
  return Number(written) === value ? written : text;
}

/** Writes nanodollars as US dollars with at least two decimals: `1500000000` → `$1.50`. */
export function formatUsd(nanoUsd: number): string {
  const sign = nanoUsd < 0 ? "-" : "";
  const absolute = Math.abs(nanoUsd);
  const whole = Math.floor(absolute / NANO_PER_USD);
  const fraction = String(absolute % NANO_PER_USD)
    .padStart(9, "0")
    .replace(/0{1,7}$/, "");
  return `${sign}$${whole}.${fraction}`;
}
