/**
 * The request that the arguments of `fetch` describe: the given one if `init` changes nothing, because a copy takes time.
 * Bun's server passes itself in place of `init`.
 * @throws TypeError as `new Request` does
 */
export function toRequest(
  input: Request | URL | string,
  init: RequestInit | null | undefined,
): Request {
  const isChanged = init !== undefined && init !== null && isPlain(init);
  return input instanceof Request && !isChanged ? input : new Request(input, init ?? {});
}

/** Whether an object is of no class. */
function isPlain(value: object): boolean {
  const prototype = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}
