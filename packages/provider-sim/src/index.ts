/** A built-in model without an account, for first steps, examples and demos. */
export { type SimOptions, simProvider, simSchema } from "./sim-provider.ts";
