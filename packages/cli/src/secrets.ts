import { open } from "node:fs/promises";
import { CommandError } from "./failure.ts";

/** Reads at most one byte more than the limit, which works for any kind of file, such as a pipe. */
export async function readBounded(file: string, maxBytes: number): Promise<Buffer> {
  const handle = await open(file, "r");
  try {
    const bytes = Buffer.alloc(maxBytes + 1);
    let length = 0;
    while (length < bytes.length) {
      const { bytesRead } = await handle.read(bytes, length, bytes.length - length, null);
      if (bytesRead === 0) break;
      length += bytesRead;
    }
    return bytes.subarray(0, length);
  } finally {
    await handle.close();
  }
}

/** No secret is longer than this. */
export const maxSecretBytes = 65_536;

/**
 * Reads a secret from a file. Removes one line end.
 * @throws CommandError if the file can't be read or is too long
 */
export async function secretInFile(file: string): Promise<string> {
  const bytes = await readBounded(file, maxSecretBytes).catch((thrown: unknown) => {
    const code = thrown instanceof Error && "code" in thrown ? String(thrown.code) : "unknown";
    throw new CommandError(`the secret in ${file} can't be read (${code})`);
  });
  if (bytes.length > maxSecretBytes) throw new CommandError(`the secret in ${file} is too long`);
  return withoutLineEnd(bytes.toString());
}

/**
 * Reads a secret from an environment variable. Removes one line end.
 * @throws CommandError if the variable is not set or empty
 */
export function secretInVariable(variable: string): string {
  const secret = process.env[variable];
  if (secret !== undefined && secret !== "") return withoutLineEnd(secret);
  throw new CommandError(`the environment variable ${variable} is not set or empty`);
}

/** Removes one line end. */
export function withoutLineEnd(text: string): string {
  return text.replace(/\r?\n$/, "");
}
