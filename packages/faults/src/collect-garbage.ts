import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

/** Returns a function that collects all garbage, without a flag at the start of the process. */
export function garbageCollector(): () => void {
  setFlagsFromString("--expose-gc");
  const collect: unknown = runInNewContext("gc");
  return () => {
    if (typeof collect === "function") collect();
  };
}
