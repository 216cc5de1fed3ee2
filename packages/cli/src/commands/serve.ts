import { type Command, Option } from "commander";
import { wholeNumber } from "../arguments.ts";
import { optionsOf } from "../globals.ts";

interface ServeOptions {
  readonly port?: number;
  readonly host?: string;
  readonly closeWithin?: number;
}

export function defineServe(program: Command): void {
  program
    .command("serve")
    .description("answer requests until told to stop (SIGINT, SIGTERM)")
    .addOption(
      new Option("--port <port>", "port to listen on, 0 for a free one (default: 8787)")
        .argParser(wholeNumber(0, 65_535))
        .env("PORT"),
    )
    .addOption(new Option("--host <host>", "address to listen on (default: 127.0.0.1)").env("HOST"))
    .option(
      "--close-within <seconds>",
      "how long a shutdown may take: answers that outlast it end with an error (default: 25)",
      wholeNumber(1, 3_600),
    )
    .action(async (_options: unknown, command: Command) => {
      const { runServer } = await import("../run-server.ts");
      await runServer(optionsOf<ServeOptions>(command));
    });
}
