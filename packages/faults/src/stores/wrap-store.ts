import type { Store } from "@tollgate/core/store";

/** What stands around every call of a store; `name` is such as `openStep` or `keys.findByDigest`. */
export type WrapCall = (name: string, call: () => Promise<unknown>) => Promise<unknown>;

/** A store of which every call, of verbs and repositories alike, goes through `around`. */
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
