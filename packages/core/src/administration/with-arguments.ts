/**
 * A noun whose methods take what is not given for an object without members, so that each misses by name what it needs
 * of it. Anything else that is given in place of an object becomes one, which has no member that is asked for.
 */
export function withArguments<Noun extends object>(noun: Noun): Noun {
  const taking = { ...noun };
  for (const name of Object.keys(noun)) {
    const method: unknown = Reflect.get(noun, name);
    if (typeof method === "function")
      Reflect.set(taking, name, (first: unknown, ...others: readonly unknown[]): unknown =>
        Reflect.apply(method, noun, [Object(first), ...padded(others)]),
      );
  }
  return taking;
}

/** No method takes more than two arguments after its first. */
function padded([second, third]: readonly unknown[]): readonly unknown[] {
  return [second ?? {}, third ?? {}];
}
