/** A method of a gateway's administration, such as `keys.create`. */
export interface AdministrativeMethod {
  readonly noun: string;
  readonly verb: string;
  /** `noun.verb`. */
  readonly name: string;
  readonly call: (...given: readonly unknown[]) => unknown;
}

/** Every method of every noun. */
export function administrativeMethods(gateway: object): readonly AdministrativeMethod[] {
  return Object.entries(gateway).flatMap(([noun, members]: readonly [string, unknown]) =>
    typeof members !== "object" || members === null || noun === "handlers"
      ? []
      : Object.entries(members).flatMap(([verb, method]: readonly [string, unknown]) =>
          typeof method === "function"
            ? [
                {
                  noun,
                  verb,
                  name: `${noun}.${verb}`,
                  call: (...given: readonly unknown[]): unknown =>
                    Reflect.apply(method, members, given),
                },
              ]
            : [],
        ),
  );
}

/** The outcome of a call: its error or its result, with every row of a list. */
export async function outcomeOf(call: () => unknown): Promise<unknown> {
  try {
    const result: unknown = call();
    if (typeof result !== "object" || result === null) return result;
    if (Symbol.asyncIterator in result && typeof result[Symbol.asyncIterator] === "function")
      for await (const _row of result as AsyncIterable<unknown>);
    return await result;
  } catch (error) {
    return error;
  }
}
