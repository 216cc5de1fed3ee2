import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { rawClient, scriptedUpstream } from "@tollgate/testing";
import { expect, it, onTestFinished } from "vitest";
import { takeLeaks } from "../../../scripts/secret-sweep.ts";

const key = `tg_${"a1B2".repeat(13).slice(0, 49)}`;
const platform = ["sk", "platform", "1"].join("-");
/** Writes what it reads, in two pieces. */
const echo = ["--eval", "process.stdin.on('data', (b) => process.FD.write(b))"];

async function printed(
  text: string,
  fd: "stdout" | "stderr",
  output: "pipe" | "inherit" = "pipe",
): Promise<readonly string[]> {
  const words = echo.map((word) => word.replace("FD", fd));
  const child = spawn(process.execPath, words, { stdio: ["pipe", output, output] });
  child.stdin?.write(text.slice(0, 12));
  await new Promise((resolve) => setImmediate(resolve));
  child.stdin?.end(text.slice(12));
  await once(child, "close");
  return takeLeaks();
}

const leak = (what: string): unknown =>
  expect.stringMatching(new RegExp(`^${what} contains the secret (tg_a1B2|sk-plat)…\\.$`));

it.each([
  ["stdout", "pipe", key],
  ["stderr", "pipe", `a request for ${platform}`],
  ["stderr", "inherit", `a request with ${key}`],
] as const)("notices a secret that a process prints to %s (%s)", async (fd, output, text) => {
  expect(await printed(text, fd, output)).toEqual([leak("The output of a process")]);
});

it("lets the command line show a new key", async () => {
  const shown = `  ${key}\n{"secret":"${key}"}\nsecret  ${key}\n -H "Authorization: Bearer ${key}"`;
  expect(await printed(shown, "stdout")).toEqual([]);
});

it("notices a secret that a process prints while the test waits for its end", () => {
  const words = ["--eval", `console.error("a" + "tg_${key.slice(3, 4)}", "${key}")`];
  expect(() => spawnSync(process.execPath, words)).toThrow("contains the secret tg_a1B2");
});

it("notices secrets in requests to an upstream and in answers to a raw client", async () => {
  const upstream = await scriptedUpstream(({ send }) => send(`HTTP/1.1 200 OK\r\nx: ${key}\r\n`));
  onTestFinished(() => upstream.close());
  const client = await rawClient(upstream.url);
  client.post({}, { secret: platform });
  await client.until("x:");
  expect(takeLeaks()).toEqual([leak("An answer")]);
  const requests = [
    [{ user: platform }, platform],
    [{}, key],
  ] as const;
  for (const [body, secret] of requests) {
    const { length } = upstream.requests;
    client.post(body, { secret });
    await expect.poll(() => upstream.requests.length).toBe(length + 1);
    expect(takeLeaks()).toContainEqual(leak("A request to an upstream"));
  }
  client.close();
});
