import { GatewayError } from "../errors/gateway-error.ts";
import type { GatewayContext } from "../pipeline/context.ts";
import { evidenceUnavailable } from "../pipeline/store-calls.ts";

/** The line as the administration uses it: whatever its store fails with is a GatewayError that keeps its cause. */
export function durableLine(line: GatewayContext): GatewayContext {
  return { ...line, store: durably(line.store), budgets: durably(line.budgets) };
}

/** Waits for the store; whatever it fails with, what was asked for may be done or not. */
export async function orUnavailable<Result>(asked: Promise<Result>): Promise<Result> {
  try {
    return await asked;
  } catch (cause) {
    if (cause instanceof GatewayError) throw cause;
    throw evidenceUnavailable(
      cause,
      "The store failed: this was not done, or it is not known whether it was.",
    );
  }
}

function durably<Part extends object>(part: Part): Part {
  // A proxy of `part` itself could not replace the methods of a store that is frozen.
  const shadow: Part = Object.create(part);
  return new Proxy(shadow, {
    get(_shadow, name): unknown {
      const member: unknown = Reflect.get(part, name);
      if (typeof member !== "function")
        return typeof member === "object" && member !== null ? durably(member) : member;
      return (...given: unknown[]): unknown => {
        const result: unknown = Reflect.apply(member, part, given);
        return result instanceof Promise ? orUnavailable(result) : result;
      };
    },
  });
}
