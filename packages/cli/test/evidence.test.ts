import { generateKeyPairSync } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { createGateway, ed25519Signer } from "@tollgate/core";
import { simProvider } from "@tollgate/provider-sim";
import { sqliteStore } from "@tollgate/store-sqlite";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { temporaryFolder } from "./command-line.ts";
import { runHere } from "./in-process.ts";

const { privateKey } = generateKeyPairSync("ed25519");
const pem = privateKey.export({ type: "pkcs8", format: "pem" }).toString();
const folder = temporaryFolder();
const filename = join(folder, "tollgate.db");
const config = join(folder, "tollgate.config.json");
writeFileSync(
  config,
  JSON.stringify({
    store: { type: "sqlite", filename },
    providers: { sim: { type: "sim" } },
    evidence: { name: "gateway.example", privateKey: pem },
  }),
);

/** Creates a key, whose leaf is sealed. */
async function createKey(label: string): Promise<void> {
  await using gateway = createGateway({
    store: sqliteStore({ filename }),
    providers: { sim: simProvider() },
    evidence: { signer: ed25519Signer({ name: "gateway.example", privateKey }) },
  });
  await gateway.keys.create({ organizationId: "acme", userId: "ada", label });
  await gateway.evidence.seal();
}

const evidence = (...words: readonly string[]) =>
  runHere(["--config", config, "evidence", ...words]);

describe("the commands for evidence", { timeout: 60_000 }, () => {
  it("verify logs with the configured key, with others, and with anchors", async () => {
    await createKey("first");
    const anchored = await evidence("anchor", "--organization", "acme");
    expect(anchored.output).toMatch(/^gateway\.example\/organizations\/acme\n1\n\S{44}\n\n\u2014 /);
    const anchor = join(folder, "anchor.txt");
    writeFileSync(anchor, anchored.output);
    await createKey("second");
    const { output: key } = await evidence("key");
    expect(key).toMatch(/^gateway\.example\+[0-9a-f]{8}\+\S+\n$/);
    const verified = await evidence("verify", "--key", key.trim(), "--anchor", anchor);
    expect(verified).toMatchObject({ code: 0, errors: "" });
    expect(verified.output).toMatch(/\nacme +2 +2 +1\b/);
    const later = await evidence("anchor", "--organization", "acme");
    writeFileSync(anchor, anchored.output + later.output);
    expect(await evidence("verify", "--anchor", anchor)).toMatchObject({
      ...{ code: 0, output: expect.stringMatching(/\nacme +2 +2 +2\b/), errors: "" },
    });
    const { output } = await evidence("verify", "--organization", "acme", "--json");
    expect(JSON.parse(output)).toEqual({
      data: [{ organizationId: "acme", size: 2, checkpoints: 2, anchors: 0, problem: null }],
    });
    expect(await evidence("verify", "--organization", "nobody")).toMatchObject({
      code: 0,
      output: "nothing is sealed yet\n",
    });
    const other = ed25519Signer({
      name: "gateway.example",
      privateKey: generateKeyPairSync("ed25519").privateKey,
    });
    const id = key.split("+")[1] ?? "";
    const wrong = Buffer.concat([Uint8Array.of(1), other.publicKey]).toString("base64");
    expect(await evidence("verify", "--key", `gateway.example+${id}+${wrong}`)).toMatchObject({
      code: 1,
      errors: expect.stringContaining("name+id+key"),
    });
    expect(await evidence("verify", "--anchor", join(folder, "none.txt"))).toMatchObject({
      code: 1,
      errors: expect.stringContaining("can't be read (ENOENT)"),
    });
  });

  it.each([
    ["is empty", "\n", "has no note"],
    ["is too long to be read whole", "x".repeat(1_048_577), "is too long"],
    ["has a note of an unknown log", "gateway.example/organizations/x\n", "was not found"],
  ])("fail with an anchor file that %s", async (_, notes, problem) => {
    const file = join(folder, "wrong.txt");
    writeFileSync(file, notes);
    expect(await evidence("verify", "--anchor", file)).toMatchObject({
      ...{ code: 1, output: "", errors: expect.stringContaining(problem) },
    });
  });

  it("fail and name the first leaf that was changed", async () => {
    await createKey("third");
    const database = new DatabaseSync(filename);
    database.exec(
      `UPDATE leaves SET meta = replace(meta, 'key.created', 'key.revoked') WHERE organization_id = 'acme'
        AND sequence = (SELECT sequence FROM sealed_leaves WHERE organization_id = 'acme' AND number = 1)`,
    );
    database.close();
    const { code, output, errors } = await evidence("verify", "--organization", "acme");
    expect([code, errors]).toEqual([1, "error: some logs have a problem\n"]);
    expect(output).toContain("from leaf 1 on, checkpoint 1: leaf 1 doesn't have its hash");
  });

  it("fail for a database with records that was never sealed", async () => {
    const apart = temporaryFolder();
    const store = { type: "sqlite", filename: join(apart, "tollgate.db") };
    const configuration = join(apart, "tollgate.config.json");
    const settings = { store, providers: { sim: { type: "sim" } } };
    writeFileSync(configuration, JSON.stringify(settings));
    const inFolder = (...words: readonly string[]) =>
      runHere(["--config", configuration, ...words]);
    const { output: key } = await evidence("key");
    const verify = () => inFolder("evidence", "verify", "--key", key.trim());
    const created = ["--organization", "acme", "--user", "ada", "--label", "laptop"];
    expect(await inFolder("keys", "create", ...created)).toMatchObject({ code: 0 });
    // Its leaf may still wait.
    expect(await verify()).toMatchObject({ code: 0, output: "nothing is sealed yet\n" });
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 120_000 });
    onTestFinished(() => void vi.useRealTimers());
    const { code, output, errors } = await verify();
    expect(output).toMatch(
      /^acme +0 +0 +0 +from leaf 0 on, checkpoint 0: nothing is sealed: 1 leaf that should be sealed/m,
    );
    expect([code, errors]).toEqual([1, "error: some logs have a problem\n"]);
  });

  it("need a log to anchor, and the configuration of this machine", async () => {
    expect(await evidence("anchor", "--organization", "nobody")).toMatchObject({
      code: 1,
      errors: "error: the log has no signed checkpoint\n",
    });
    const remote = await runHere(["--url", "http://127.0.0.1:1", "evidence", "verify"]);
    expect(remote).toMatchObject({ code: 2, errors: expect.stringContaining("leave out --url") });
  });
});
