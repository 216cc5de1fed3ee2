import { DatabaseSync } from "node:sqlite";
import { sqliteStore } from "@tollgate/store-sqlite";
import { expect, it, onTestFinished } from "vitest";
import { receive, referenceIn, requestOf, requestWithoutBody } from "../src/histories/ask.ts";
import { organization, type Product, type ProductOptions } from "../src/product.ts";
import { chatWire } from "../src/upstream-wires.ts";
import { codeOf, expectWhole, good, startProduct } from "./fixture.ts";

/** A product whose database the test can damage. */
async function onDatabase(options: ProductOptions = {}) {
  let database: DatabaseSync | undefined;
  const product = await startProduct(good, {
    ...options,
    store(filename) {
      database = new DatabaseSync(filename);
      return sqliteStore({ client: database });
    },
  });
  if (database === undefined) throw new Error("no database is open");
  const opened = database;
  onTestFinished(() => opened.close());
  return { product, database: opened };
}

const respond = async ({ gateway, secret }: Product, fields: object = {}) => {
  const body = { model: chatWire.model, input: "Hello", ...fields };
  return receive(await gateway.fetch(requestOf({ secret, path: "responses", body })));
};
const get = async ({ gateway, secret }: Product, path: string) =>
  receive(await gateway.fetch(requestWithoutBody("GET", path, secret)));

const damaged = (column: string) =>
  `UPDATE responses SET ${column} = CAST('{"a' AS BLOB) WHERE id = ?`;

it.each([
  ["body", "", 500],
  ["input", "/input_items", 500],
] as const)(
  "F54 a response whose %s is damaged answers 500 with a request id, and others are served",
  async (column, path, status) => {
    const { product, database } = await onDatabase();
    const [bad, sound] = [await respond(product), await respond(product)].map(
      (answer) => referenceIn(answer)?.id ?? "",
    );
    database.prepare(damaged(column)).run(bad ?? "");
    const answer = await get(product, `responses/${bad}${path}`);
    expect([answer.status, answer.body]).toEqual([
      status,
      expect.stringContaining("internal_error"),
    ]);
    expect(answer.headers.map(([name]) => name)).toContain("x-request-id");
    expect((await get(product, `responses/${sound}${path}`)).status).toBe(200);
    await expectWhole(product);
  },
);

it("F54 a response whose history is damaged is not continued, and nothing is sent", async () => {
  const { product, database } = await onDatabase();
  const bad = referenceIn(await respond(product))?.id ?? "";
  database.prepare(damaged("messages")).run(bad);
  expect((await respond(product, { previous_response_id: bad })).status).toBe(500);
  expect(product.upstream.requests).toHaveLength(1);
  await expectWhole(product);
});

it("F54 a Step that is damaged fails alone", async () => {
  const { product, database } = await onDatabase();
  await product.ask();
  await product.ask();
  const [bad, sound] = await product.steps();
  const before = database.prepare("SELECT attempt_end AS kept FROM steps WHERE id = ?");
  const kept = before.get(bad?.id ?? "")?.["kept"] ?? null;
  const set = database.prepare("UPDATE steps SET attempt_end = ? WHERE id = ?");
  set.run('{"a', bad?.id ?? "");
  const { steps } = product.gateway;
  await expect(
    steps.get({ organizationId: organization, id: bad?.id ?? "" }),
  ).rejects.toMatchObject({
    code: "evidence_unavailable",
  });
  const whole = await steps.get({ organizationId: organization, id: sound?.id ?? "" });
  expect(whole.outcome).toBe("completed");
  expect((await product.ask()).status).toBe(200);
  set.run(kept, bad?.id ?? "");
  await expectWhole(product);
});

it("F54 a credential that was tampered with is never sent", async () => {
  const keys = { k1: Buffer.alloc(32, 1).toString("base64") };
  const { product, database } = await onDatabase({
    provider: { apiKey: null, connection: "customer" },
    gateway: { secrets: { current: "k1", keys } },
  });
  const own = { organizationId: organization, gateway: "up", apiKey: "sk-own" };
  await product.gateway.connections.set(own);
  const { credential } = database.prepare("SELECT credential FROM connections").get() ?? {};
  if (!(credential instanceof Uint8Array)) throw new Error("no credential is stored");
  credential[20] = (credential[20] ?? 0) ^ 1;
  database.prepare("UPDATE connections SET credential = ?").run(credential);
  const refused = await product.ask();
  expect([refused.status, codeOf(refused)]).toEqual([503, "connection_unavailable"]);
  expect(product.upstream.requests).toEqual([]);
  const events = product.events.filter(({ type }) => type === "connection.unavailable");
  expect(events).toMatchObject([{ reason: "credential_damaged" }]);
  await product.gateway.connections.set(own);
  await expectWhole(product);
});
