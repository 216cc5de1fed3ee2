import type { Decision, View } from "@tollgate/store-engine";
import { applyChange } from "./apply-change.ts";
import type { State } from "./state.ts";
import { viewOf } from "./view.ts";

/** Decides on what the state has and writes what was decided, without awaiting, which makes it atomic. */
export type CarryOut = <Result>(decide: (view: View) => Decision<Result>) => Result;

export function createCarryOut(state: State): CarryOut {
  const view = viewOf(state);
  return (decide) => {
    const { result, change } = decide(view);
    applyChange(state, change);
    return result;
  };
}
