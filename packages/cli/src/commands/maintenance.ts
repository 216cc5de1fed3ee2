import type { Command } from "commander";
import { optionsOf } from "../globals.ts";
import { withGateway } from "../open-gateway.ts";
import { print } from "../print.ts";

export function defineMaintenance(program: Command): void {
  program
    .command("migrate")
    .description("create or upgrade what the store keeps; safe at any time")
    .option("--check", "change nothing; fail unless it is up to date")
    .action(migrate);
  program.command("recover").description("settle Steps whose process died").action(recover);
  program.command("sweep").description("remove what is older than it is to be kept").action(sweep);
}

async function migrate(_options: unknown, command: Command): Promise<void> {
  const { config, json, check } = optionsOf<{ readonly check?: boolean }>(command);
  await withGateway(config, async (gateway) => {
    await (check ? gateway.checkStore() : gateway.ready());
    print(json, { migrated: true }, "the store is up to date");
  });
}

async function recover(_options: unknown, command: Command): Promise<void> {
  const { config, json } = optionsOf(command);
  await withGateway(config, async (gateway) => {
    const recovered = await gateway.recover();
    print(json, { recovered }, `Steps recovered: ${recovered}`);
  });
}

async function sweep(_options: unknown, command: Command): Promise<void> {
  const { config, json } = optionsOf(command);
  await withGateway(config, async (gateway) => {
    const removed = await gateway.sweep();
    print(json, { removed }, `Responses, Steps and transcripts removed: ${removed}`);
  });
}
