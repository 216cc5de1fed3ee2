import type { SecretBox } from "@tollgate/core";
import { expect, it } from "vitest";
import { chat, organization, type Product } from "../src/product.ts";
import { readAnswer } from "../src/read-answer.ts";
import { goodAnswer } from "../src/upstream-bytes.ts";
import { codeOf, expectWhole, good, requestsArrived, startProduct } from "./fixture.ts";

type Script = Parameters<typeof startProduct>[0];

const own = { organizationId: organization, gateway: "up" };
const secrets = { current: "k1", keys: { k1: Buffer.alloc(32, 1).toString("base64") } };

/** A product that uses the organizations' own credentials. */
async function ownProduct(script: Script, box: typeof secrets | SecretBox = secrets) {
  const provider = { apiKey: null, connection: "customer" } as const;
  const product = await startProduct(script, { provider, gateway: { secrets: box } });
  await product.gateway.connections.set({ ...own, apiKey: "sk-first" });
  return product;
}

const credentials = ({ upstream }: Product) =>
  upstream.requests.map(({ head }) => /^authorization: Bearer (.*)$/im.exec(head)?.[1]);

it("F48 a call finishes after its credential is removed, and the next is refused", async () => {
  const held = Promise.withResolvers<void>();
  const product = await ownProduct(async ({ send, body }) => {
    await held.promise;
    await send(goodAnswer(body));
  });
  const running = product.ask({ stream: true });
  await requestsArrived(product);
  await product.gateway.connections.remove(own);
  held.resolve();
  const finished = await running;
  expect(finished).toMatchObject({ status: 200, whole: true });
  const refused = await product.ask();
  expect([refused.status, codeOf(refused)]).toEqual([400, "connection_required"]);
  expect(credentials(product)).toEqual(["sk-first"]);
  await product.gateway.connections.set({ ...own, apiKey: "sk-second" });
  await expectWhole(product);
  expect(credentials(product)).toEqual(["sk-first", "sk-second"]);
});

it("F49 a key service that fails for one credential stops only that organization at that gateway", async () => {
  let isDown = true;
  const box: SecretBox = {
    contract: 1,
    current: "service/1",
    wrap: (dataKey) => ({ keyId: "service/1", wrapped: dataKey }),
    unwrap({ wrapped }, context) {
      if (isDown && Buffer.from(context).includes(organization)) throw new Error("sk-canary");
      return wrapped;
    },
  };
  const product = await ownProduct(good, box);
  const failed = await product.ask();
  expect([failed.status, codeOf(failed)]).toEqual([503, "connection_unavailable"]);
  expect(product.upstream.requests).toEqual([]);
  expect(product.events.filter(({ type }) => type === "connection.unavailable")).toMatchObject([
    { ...own, keyId: "service/1", reason: "key_unavailable" },
  ]);
  expect(JSON.stringify(product.events)).not.toContain("canary");
  expect(await product.problems()).toEqual([]);
  const other = { organizationId: "other", userId: "jane", label: "key" };
  const { secret } = await product.gateway.keys.create(other);
  await product.gateway.connections.set({ ...own, organizationId: "other", apiKey: "sk-other" });
  const client = await product.connect();
  const headers = ["connection: close"];
  client.post(chat(), { secret, headers });
  expect(readAnswer(await client.ended()).status).toBe(200);
  expect(credentials(product)).toEqual(["sk-other"]);
  isDown = false;
  expect((await product.ask()).status).toBe(200);
  expect(credentials(product)).toEqual(["sk-other", "sk-first"]);
});
