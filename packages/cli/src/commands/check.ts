import type { Command } from "commander";
import { optionsOf } from "../globals.ts";

interface CheckOptions {
  readonly strict?: boolean;
  readonly store?: boolean;
}

export function defineCheck(program: Command): void {
  program
    .command("check")
    .description("load the configuration, say what is in it, and warn of what has no effect")
    .option("--strict", "fail where there is a warning")
    .option("--store", "open the store, too, and fail unless it is up to date; changes nothing")
    .action(async (_options: unknown, command: Command) => {
      const { runCheck } = await import("../run-check.ts");
      await runCheck(optionsOf<CheckOptions>(command));
    });
}
