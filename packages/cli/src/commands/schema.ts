import type { Command } from "commander";

export function defineSchema(program: Command): void {
  program
    .command("schema")
    .description("JSON Schemas for editors")
    .command("config")
    .description("the schema of configuration files in JSON or YAML")
    .action(async () => {
      const { configurationJsonSchema } = await import("../configuration/data-schema.ts");
      const schema = await configurationJsonSchema();
      process.stdout.write(`${JSON.stringify(schema, null, 2)}\n`);
    });
}
