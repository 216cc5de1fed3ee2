import type { Command } from "commander";

export function defineSchema(program: Command): void {
  program
    .command("schema")
    .description("JSON Schemas for editors")
    .command("config")
    .description("what a configuration file in JSON or YAML may hold")
    .action(async () => {
      const { configurationJsonSchema } = await import("../configuration/data-schema.ts");
      const schema = await configurationJsonSchema();
      process.stdout.write(`${JSON.stringify(schema, null, 2)}\n`);
    });
}
