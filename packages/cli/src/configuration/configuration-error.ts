import type { Problem } from "@tollgate/core/schemas";
import { CommandError } from "../failure.ts";

/** An invalid configuration file, with all its problems. */
export class ConfigurationError extends CommandError {
  readonly file: string;
  readonly problems: readonly Problem[];

  constructor(file: string, problems: readonly Problem[]) {
    super(`${file}: ${problems.map(({ message }) => message).join("\n")}`);
    this.file = file;
    this.problems = problems;
  }
}

/** An error about the file as a whole. */
export function fileProblem(file: string, message: string): ConfigurationError {
  return new ConfigurationError(file, [{ path: "", message }]);
}
