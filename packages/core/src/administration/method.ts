import { GatewayError } from "../errors/gateway-error.ts";
import { read, type Schema } from "../input/read.ts";
import { evidenceUnavailable } from "../pipeline/store-calls.ts";

/** Makes a method that checks its argument first. Invalid arguments change nothing; a failure of the store is a GatewayError. */
export function method<Argument, Result>(
  schema: Schema<Argument>,
  run: (argument: Argument) => Promise<Result>,
): (argument: Argument) => Promise<Result> {
  return async (argument) => withStoreErrors(run(read(schema, argument)));
}

/** Turns a failure of the store into a GatewayError with that failure as its `cause`. The change may have happened or not. */
export async function withStoreErrors<Result>(result: Promise<Result>): Promise<Result> {
  try {
    return await result;
  } catch (cause) {
    if (cause instanceof GatewayError) throw cause;
    throw evidenceUnavailable(
      cause,
      "The store failed. If this was a change, its outcome is unknown: read the record before you retry.",
    );
  }
}
