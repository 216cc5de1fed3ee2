/** A built-in model that needs no account: for first steps, examples and demonstrations. */
export { type SimOptions, simProvider, simSchema } from "./sim-provider.ts";
