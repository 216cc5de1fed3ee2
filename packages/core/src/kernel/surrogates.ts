/** Whether a text ends within a character: with the first half of a surrogate pair. */
export function endsInHalf(text: string): boolean {
  const last = text.charCodeAt(text.length - 1);
  return last >= 0xd800 && last <= 0xdbff;
}

/** Whether a text has more than `max` characters. A surrogate pair is one. */
export function isLonger(text: string, max: number): boolean {
  if (text.length <= max) return false;
  let left = max;
  for (const _ of text) if (left-- === 0) return true;
  return false;
}
