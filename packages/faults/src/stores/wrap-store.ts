import type { Store } from "@tollgate/core/store";
import { seededRandom } from "../random.ts";

/** Wraps a call of a store. `name` is, for example, `openStep` or `keys.findByDigest`. */
export type WrapCall = (name: string, call: () => Promise<unknown>) => Promise<unknown>;

/** A store that passes every call, of verbs and repositories alike, through `around`. */
export function wrapStore(store: Store, wrap: WrapCall): Store {
  return wrapPart(store, "", wrap);
}

function wrapPart<Part extends object>(part: Part, path: string, wrap: WrapCall): Part {
  return new Proxy(part, {
    get(target, key) {
      const member: unknown = Reflect.get(target, key);
      const name = `${path}${String(key)}`;
      if (typeof member === "function")
        return (...values: readonly unknown[]) =>
          wrap(name, async () => Reflect.apply(member, target, values));
      return typeof member === "object" && member !== null
        ? wrapPart(member, `${name}.`, wrap)
        : member;
    },
  });
}

const verbs = ["openStep", "openAttempt", "settleStep"];

/** A store where `failing` of a thousand changes of Steps fail, half of them after the write. */
export function failingStore(store: Store, failing: number): Store {
  if (failing === 0) return store;
  const random = seededRandom(process.pid);
  return wrapStore(store, async (name, call) => {
    const fails = verbs.includes(name) && random() * 1_000 < failing;
    if (fails && random() < 0.5) throw new Error("the store failed");
    const result = await call();
    if (fails) throw new Error("the store's answer was lost");
    return result;
  });
}
