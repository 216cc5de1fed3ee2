import { randomBytes } from "node:crypto";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { run, temporaryFolder } from "./command-line.ts";

const config = fileURLToPath(new URL("./connections.config.ts", import.meta.url));
const secret = "sk-canary-4711";
const KEK1 = randomBytes(32).toString("base64");
const KEK2 = randomBytes(32).toString("base64");
const acme = ["--organization", "acme"];
const folder = temporaryFolder();

/** Runs `connections` with the keys in the environment. The current key is `k1` by default. */
function connections(words: readonly string[], environment = {}, input?: string) {
  const all = ["connections", ...words, "--config", config, "--json"];
  return run(folder, all, { KEK1, ...environment }, input);
}

it("seals a credential from standard input or the environment, shows everything else, and removes it", async () => {
  const set = await connections(["set", "own", ...acme, "--actor", "ops"], {}, `${secret}\n`);
  expect(set).toMatchObject({ code: 0, errors: "" });
  const made = JSON.parse(set.output);
  expect(made).toMatchObject({ organizationId: "acme", gateway: "own", keyId: "k1" });
  const again = ["set", "own", ...acme, "--from-environment", "OWN_KEY"];
  const replaced = await connections(again, { OWN_KEY: secret });
  expect(JSON.parse(replaced.output)).toMatchObject({ id: made.id, createdAt: made.createdAt });
  const got = await connections(["get", "own", ...acme]);
  expect(JSON.parse(got.output)).toEqual(JSON.parse(replaced.output));
  const listed = await connections(["list"]);
  expect(JSON.parse(listed.output).data).toEqual([JSON.parse(got.output)]);
  const resealed = await connections(["reseal"], { KEK2, CURRENT: "k2" });
  expect(JSON.parse(resealed.output)).toEqual({ resealed: 1, failed: 0 });
  const lost = await connections(["reseal"]);
  expect(lost).toMatchObject({
    code: 1,
    errors: expect.stringContaining("1 credentials could not be resealed"),
  });
  const removed = await connections(["remove", "own", ...acme]);
  expect(JSON.parse(removed.output)).toEqual({
    organizationId: "acme",
    gateway: "own",
    removed: true,
  });
  for (const { output, errors } of [set, replaced, got, listed, resealed, lost, removed])
    expect(output + errors).not.toContain(secret);
}, 40_000);

it("rejects an invalid credential with one line that does not contain it", async () => {
  const cases = [
    [connections(["set", "own", ...acme], {}, `${secret}\u0001`), "`apiKey` must be"],
    [connections(["set", "sim", ...acme], {}, secret), "`gateway` must be a customer-owned"],
    [connections(["set", "own", ...acme], {}, secret.repeat(9_999)), "is too long"],
    [
      connections(["set", "own", ...acme, "--from-environment", "NONE"]),
      "NONE is not set or empty",
    ],
    [connections(["get", "own", ...acme], { KEK1: "short" }), "keys.k1 must be 32 bytes"],
  ] as const;
  for (const [running, line] of cases) {
    const { code, output, errors } = await running;
    expect({ code, output }).toEqual({ code: 1, output: "" });
    expect(errors).toContain(line);
    expect(errors).not.toContain("canary");
    expect(errors.trimEnd().split("\n")).toHaveLength(1);
  }
  expect(await connections(["set", "own", ...acme], {}, "\n")).toMatchObject({
    code: 2,
    errors: expect.stringContaining("pass the secret on standard input, or name its variable"),
  });
}, 40_000);
