import { CommandError } from "./failure.ts";

/** Longer than any secret: what comes beyond it is not read. */
const maxBytes = 65_536;

/** A secret from a variable of the environment, else all of standard input; a line end after it is not part of it. */
export async function readSecret(variable: string | undefined): Promise<string> {
  const text = variable === undefined ? await standardInput() : fromEnvironment(variable);
  return text.replace(/\r?\n$/, "");
}

function fromEnvironment(variable: string): string {
  const secret = process.env[variable];
  if (secret !== undefined && secret !== "") return secret;
  throw new CommandError(`the environment has nothing in ${variable}`);
}

async function standardInput(): Promise<string> {
  if (process.stdin.isTTY)
    throw new CommandError(
      "give the secret on standard input, or name a variable that holds it",
      2,
    );
  const parts: Buffer[] = [];
  let bytes = 0;
  for await (const part of process.stdin) {
    const read = Buffer.from(part);
    parts.push(read);
    bytes += read.length;
    if (bytes > maxBytes) throw new CommandError("standard input is too long for a secret");
  }
  return Buffer.concat(parts).toString();
}
