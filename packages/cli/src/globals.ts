import type { Command } from "commander";

/** The options of every command. */
export interface Globals {
  readonly config?: string;
  readonly json?: boolean;
  readonly actor: string;
}

/** Returns a command's own options and the global options. */
export function optionsOf<Own extends object>(command: Command): Own & Globals {
  return command.optsWithGlobals<Own & Globals>();
}
