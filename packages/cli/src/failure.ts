import { GatewayError } from "@tollgate/core";
import { CommanderError } from "commander";

/** Something the person who typed the command can put right, in one sentence. */
export class CommandError extends Error {
  override readonly name = "CommandError";
  /** 1 for a failure, 2 for a command that was not understood. */
  readonly exitCode: 1 | 2;

  constructor(message: string, exitCode: 1 | 2 = 1) {
    super(message);
    this.exitCode = exitCode;
  }
}

/** What to print of a failure, and the exit code; the line is null when it is printed already. */
export function describeFailure(thrown: unknown): {
  readonly exitCode: number;
  readonly line: string | null;
} {
  if (thrown instanceof CommanderError)
    return { exitCode: thrown.exitCode === 0 ? 0 : 2, line: null };
  const exitCode = thrown instanceof CommandError ? thrown.exitCode : 1;
  return { exitCode, line: `error: ${messageOf(thrown)}` };
}

/** One line, whatever was thrown, with what caused it; several problems of one configuration are joined. */
export function messageOf(thrown: unknown): string {
  const text = thrown instanceof Error ? thrown.message : String(thrown);
  const lines = text.split("\n").map((line) => line.trim());
  const line = lines.filter((some) => some !== "").join(" · ");
  const isCaused = thrown instanceof GatewayError && thrown.cause !== undefined;
  return isCaused ? `${line} (${messageOf(thrown.cause)})` : line;
}
