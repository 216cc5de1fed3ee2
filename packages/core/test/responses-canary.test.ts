import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { definePolicy, permit } from "@tollgate/core/policy";
import { sqliteStore } from "@tollgate/store-sqlite";
import { createTestGateway } from "@tollgate/testing";
import { expect, it, onTestFinished, vi } from "vitest";
import { responsesOf } from "./responses-calls.ts";

const canary = "canary-7d1f93";

/** A gateway on a file that keeps transcripts whole or as digests, and requests with the canary in every possible place. */
async function start(transcript: "full" | "digest") {
  const folder = mkdtempSync(join(tmpdir(), "tollgate-canary-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const filename = join(folder, "tollgate.db");
  const policy = definePolicy({ rules: [permit("all", {}, { transcript })] });
  const store = sqliteStore({ filename });
  const test = await createTestGateway({ store, policy, maintenance: false });
  const { provider, gateway, key } = test;
  provider.reply(
    {
      text: `text ${canary}`,
      reasoning: `thought ${canary}`,
      toolCalls: [{ name: "look", arguments: `{"at":"${canary}"}` }],
    },
    { times: 2 },
  );
  const say = (store: boolean) =>
    responsesOf(gateway, key.secret).create({
      store,
      instructions: `instructions ${canary}`,
      input: [
        { role: "user", content: [{ type: "input_text", text: `question ${canary}` }] },
        { type: "function_call", call_id: "c", name: "look", arguments: "{}" },
        { type: "function_call_output", call_id: "c", output: `output ${canary}` },
      ],
      metadata: { note: canary },
      user: canary,
    });
  return { ...test, folder, filename, say };
}

/** The files whose bytes contain the canary, even in parts that the database considers free. */
const filesWithCanary = (folder: string) =>
  readdirSync(folder).filter((name) => readFileSync(join(folder, name)).includes(canary));

/** The columns with a row that contains the canary. */
function columnsWithCanary(filename: string): readonly string[] {
  const database = new DatabaseSync(filename, { readOnly: true });
  const found = new Set<string>();
  for (const { name } of database
    .prepare("SELECT name FROM sqlite_schema WHERE type = 'table'")
    .all()) {
    for (const row of database.prepare(`SELECT * FROM ${name}`).all())
      for (const [column, value] of Object.entries(row))
        if (Buffer.from(value instanceof Uint8Array ? value : String(value)).includes(canary))
          found.add(`${name}.${column}`);
  }
  database.close();
  return [...found].sort();
}

it("store: false leaves no response state: with digests alone, no byte of the conversation is on disk (T4)", async () => {
  const { gateway, folder, say } = await start("digest");
  await say(false);
  expect(filesWithCanary(folder)).toEqual([]);
  await gateway.close();
  expect(filesWithCanary(folder)).toEqual([]);
});

it("store: false leaves the transcript evidence that the policy asks for, and nothing else (T4)", async () => {
  const { filename, say } = await start("full");
  await say(false);
  const transcripts = columnsWithCanary(filename);
  expect(transcripts.length).toBeGreaterThan(0);
  for (const column of transcripts) expect(column).toMatch(/^(transcript_parts|steps)\./);
});

it("a stored response contains the conversation until it is deleted (T3)", async () => {
  const { gateway, key, folder, filename, say } = await start("digest");
  const { id } = await say(true);
  expect(filesWithCanary(folder)).not.toEqual([]);
  const columns = columnsWithCanary(filename);
  expect(columns).toContain("responses.body");
  for (const column of columns) expect(column).toMatch(/^responses\./);
  await responsesOf(gateway, key.secret).remove(id);
  expect(columnsWithCanary(filename)).toEqual([]);
  // The gateway is still open: neither pages nor the write-ahead log may keep the bytes until it closes.
  const nothingLeft = () => expect(filesWithCanary(folder)).toEqual([]);
  await vi.waitFor(nothingLeft, { timeout: 10_000, interval: 100 });
  expect(readdirSync(folder)).toContain("tollgate.db-wal");
  await gateway.close();
  nothingLeft();
});

it("a stored response contains the conversation until it is swept (T3)", async () => {
  const { gateway, clock, filename, say } = await start("digest");
  await say(true);
  clock.setWall(clock.now() + 31 * 24 * 60 * 60 * 1_000);
  expect(await gateway.sweep()).toBe(1);
  expect(columnsWithCanary(filename)).toEqual([]);
});
