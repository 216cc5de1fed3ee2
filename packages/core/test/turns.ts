import type { Gateway } from "@tollgate/core";

/** Runs something, and counts the turns of the event loop in which the gateway reported changes. */
export async function turnsWithChanges(
  { observe }: Pick<Gateway, "observe">,
  run: () => PromiseLike<unknown>,
): Promise<number> {
  const found = new Set<number>();
  let turn = 0;
  let next = setImmediate(function count() {
    turn++;
    next = setImmediate(count);
  });
  observe(({ type }) => {
    if (type === "administered") found.add(turn);
  });
  await run();
  clearImmediate(next);
  return found.size;
}
