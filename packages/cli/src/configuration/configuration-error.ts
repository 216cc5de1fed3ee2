import type { Problem } from "@tollgate/core/schemas";
import { CommandError } from "../failure.ts";

/** A configuration file that no gateway can be made of, with everything that is wrong with it. */
export class ConfigurationError extends CommandError {
  readonly file: string;
  readonly problems: readonly Problem[];

  constructor(file: string, problems: readonly Problem[]) {
    super(`${file}: ${problems.map(({ message }) => message).join("\n")}`);
    this.file = file;
    this.problems = problems;
  }
}

/** As one problem of the file as a whole. */
export function fileProblem(file: string, message: string): ConfigurationError {
  return new ConfigurationError(file, [{ path: "", message }]);
}
