import type { Store } from "@tollgate/core/store";

/** What stands around every call of a store; `name` is such as `openStep` or `keys.findByDigest`. */
export type AroundCall = (name: string, call: () => Promise<unknown>) => Promise<unknown>;

/** A store of which every call, of verbs and repositories alike, goes through `around`. */
export function aroundStore(store: Store, around: AroundCall): Store {
  return surround(store, "", around);
}

function surround<Part extends object>(part: Part, path: string, around: AroundCall): Part {
  return new Proxy(part, {
    get(target, key) {
      const member: unknown = Reflect.get(target, key);
      const name = `${path}${String(key)}`;
      if (typeof member === "function")
        return (...values: readonly unknown[]) =>
          around(name, async () => Reflect.apply(member, target, values));
      return typeof member === "object" && member !== null
        ? surround(member, `${name}.`, around)
        : member;
    },
  });
}
