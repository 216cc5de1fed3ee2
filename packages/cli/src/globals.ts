import type { Command } from "commander";

/** The options every command takes. */
export interface Globals {
  readonly config?: string;
  readonly json?: boolean;
  readonly actor: string;
}

/** A command's own options together with those every command takes. */
export function optionsOf<Own extends object>(command: Command): Own & Globals {
  return command.optsWithGlobals<Own & Globals>();
}
