import { createTestGateway } from "@tollgate/testing";
import { expect, it } from "vitest";
import { itemsOf, responseOf } from "./responses-calls.ts";

it("the named handlers find the id in the path, for hosts with their own router", async () => {
  const { gateway, key } = await createTestGateway();
  const ask = (method: string, path: string, body?: string) =>
    new Request(`http://host/ai/v1/${path}`, {
      method,
      headers: { authorization: `Bearer ${key.secret}`, "content-type": "application/json" },
      ...(body === undefined ? {} : { body }),
    });
  const { handlers } = gateway;
  const body = '{"model":"test/tollgate/scripted","input":"Hello"}';
  const response = await responseOf(handlers.createResponse(ask("POST", "responses", body)));
  const path = `responses/${response.id}`;
  expect(await responseOf(handlers.getResponse(ask("GET", path)))).toEqual(response);
  const items = await itemsOf(handlers.listInputItems(ask("GET", `${path}/input_items?limit=1`)));
  expect(items.data).toHaveLength(1);
  expect((await handlers.deleteResponse(ask("DELETE", path))).status).toBe(200);
  expect((await handlers.getResponse(ask("GET", path))).status).toBe(404);
  const model = await handlers.getModel(ask("GET", "models/test/tollgate/scripted"));
  expect(await model.json()).toMatchObject({ id: "test/tollgate/scripted" });
  expect((await handlers.getModel(ask("GET", "elsewhere"))).status).toBe(404);
});

it("fetch applies its second argument, unless that is the server that called it", async () => {
  const { gateway, chat } = await createTestGateway();
  const statusOf = async (second: object | null) => {
    const answer = await Reflect.apply(gateway.fetch, null, [chat(), second]);
    return answer instanceof Response ? answer.status : 0;
  };
  class Server {
    readonly method = "GET";
  }
  for (const nothing of [new Server(), null, {}]) expect(await statusOf(nothing)).toBe(200);
  expect(await statusOf({ headers: { authorization: "Bearer tg_wrong" } })).toBe(401);
  expect(await statusOf(Object.assign(Object.create(null), { method: "PUT" }))).toBe(405);
});
