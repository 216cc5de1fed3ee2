import type { Command } from "commander";
import { optionsOf } from "../globals.ts";

interface CheckOptions {
  readonly strict?: boolean;
  readonly store?: boolean;
}

export function defineCheck(program: Command): void {
  program
    .command("check")
    .description("load the configuration, show it, and warn of settings without effect")
    .option("--strict", "exit with 1 if there is a warning")
    .option("--store", "also open the store, without changing it, and fail unless it is up to date")
    .action(async (_options: unknown, command: Command) => {
      const { runCheck } = await import("../run-check.ts");
      await runCheck(optionsOf<CheckOptions>(command));
    });
}
