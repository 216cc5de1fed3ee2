import { read, type Schema } from "../input/read.ts";

/** A verb whose one argument is read by its schema: a call that breaks it is rejected, and changes nothing. */
export function checked<Argument, Result>(
  schema: Schema<Argument>,
  run: (argument: Argument) => Promise<Result>,
): (argument: Argument) => Promise<Result> {
  return async (argument) => run(read(schema, argument));
}
