import { GatewayError } from "@tollgate/core";
import { CommanderError } from "commander";
import { printable } from "./table.ts";

/** An error that the user can fix, in one sentence. */
export class CommandError extends Error {
  override readonly name = "CommandError";
  /** 1 for a failure, 2 for an invalid command. */
  readonly exitCode: 1 | 2;

  constructor(message: string, exitCode: 1 | 2 = 1) {
    super(message);
    this.exitCode = exitCode;
  }
}

/** Returns why a server can't listen, with the options that change where it does; any other error as it is. */
export function listenFailure(
  thrown: unknown,
  { port, host }: { readonly port: number; readonly host: string },
  options: { readonly port: string; readonly host: string },
): unknown {
  if (!(thrown instanceof Error && "code" in thrown && "syscall" in thrown)) return thrown;
  return new CommandError(
    thrown.code === "EADDRINUSE"
      ? `port ${port} of ${host} is in use: choose another port with ${options.port}`
      : `can't listen on port ${port} of ${host} (${thrown.code}): choose another with ${options.host} or ${options.port}`,
  );
}

/** Returns the exit code and the line to print. The line is null if Commander has printed it. */
export function describeFailure(thrown: unknown): {
  readonly exitCode: number;
  readonly line: string | null;
} {
  if (thrown instanceof CommanderError)
    return { exitCode: thrown.exitCode === 0 ? 0 : 2, line: null };
  const exitCode = thrown instanceof CommandError ? thrown.exitCode : 1;
  return { exitCode, line: `error: ${printable(messageOf(thrown))}` };
}

/** Returns one line for any thrown value, with its cause. Joins several lines. */
export function messageOf(thrown: unknown): string {
  const text = thrown instanceof Error ? thrown.message : String(thrown);
  const lines = text.split("\n").map((line) => line.trim());
  const line = lines.filter((some) => some !== "").join(" · ");
  const isCaused = thrown instanceof GatewayError && thrown.cause !== undefined;
  return isCaused ? `${line} (${messageOf(thrown.cause)})` : line;
}
