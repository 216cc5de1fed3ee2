import type { Command } from "commander";

/** The options of every command. */
export interface Globals {
  readonly config?: string;
  readonly json?: boolean;
  /** Where the admin API of a remote gateway is mounted. */
  readonly url?: string;
  readonly tokenFile?: string;
  readonly insecure?: boolean;
  readonly actor?: string;
}

/** The name recorded with a change that nobody signed in for. */
export const defaultActor = "cli";

/** Returns a command's own options. */
export function optionsOf<Own extends object>(command: Command): Own {
  return command.opts<Own>();
}

/** Returns the options of every command. */
export function globalsOf(command: Command): Globals {
  return command.optsWithGlobals<Globals>();
}
