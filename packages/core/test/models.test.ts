import { definePolicy, permit } from "@tollgate/core/policy";
import { createTestGateway, type TestGateway } from "@tollgate/testing";
import { describe, expect, it } from "vitest";
import { failureOf } from "./wire.ts";
import { written } from "./written.ts";

const models = { "a/one": {}, "a/two": {}, "b/with/slashes": {} };

function get({ gateway, key }: TestGateway, path: string): Promise<Response> {
  return gateway.fetch(`http://in-process/v1/${path}`, {
    headers: { authorization: `Bearer ${key.secret}` },
  });
}

const object = (id: string, vendor: string) => ({
  id,
  object: "model",
  created: 0,
  owned_by: vendor,
});

describe("GET /v1/models", () => {
  it("lists the models of every gateway", async () => {
    const test = await createTestGateway({ models, gateways: ["other"] });
    const answer = await get(test, "models");
    expect(answer.status).toBe(200);
    expect(await answer.json()).toEqual({
      object: "list",
      data: ["test", "other"].flatMap((gateway) => [
        object(`${gateway}/a/one`, "a"),
        object(`${gateway}/a/two`, "a"),
        object(`${gateway}/b/with/slashes`, "b"),
      ]),
    });
  });

  it("is narrowed by the key's models and by the policy at the key's default class, unrecorded", async () => {
    const policy = definePolicy({
      rules: [
        permit("public", { upTo: "D0_PUBLIC" }),
        permit("internal", { model: "test/a/two", upTo: "D1_INTERNAL" }),
        permit("other", { model: "test/b/*" }),
      ],
    });
    const test = await createTestGateway({ models, policy, key: { models: ["test/a/*"] } });
    expect(await (await get(test, "models")).json()).toMatchObject({
      data: [{ id: "test/a/two" }],
    });
    expect((await get(test, "models/test/a/two")).status).toBe(200);
    expect((await get(test, "models/test/a/one")).status).toBe(404);
    expect((await get(test, "models/test/b/with/slashes")).status).toBe(404);
    expect(await written(test.gateway)).toEqual({ steps: 0, sessions: 0, decisions: 0 });
  });

  it("gives one model, its slashes written plainly or escaped", async () => {
    const test = await createTestGateway({ models });
    for (const id of ["test/b/with/slashes", "test%2Fb%2Fwith%2Fslashes"]) {
      const answer = await get(test, `models/${id}`);
      expect(await answer.json()).toEqual(object("test/b/with/slashes", "b"));
    }
  });

  it.each(["test/a/none", "none/a/one", "one", "%", "test/a/one/"])(
    "answers 404 for the model %s",
    async (id) => {
      const test = await createTestGateway({ models });
      const answer = await get(test, `models/${id}`);
      expect(answer.status).toBe(404);
      expect((await failureOf(answer)).type).toBe("invalid_request_error");
    },
  );

  it("needs a key, and takes no other method", async () => {
    const { gateway, key } = await createTestGateway();
    expect((await gateway.fetch("http://in-process/v1/models")).status).toBe(401);
    const answer = await gateway.fetch("http://in-process/v1/models", {
      method: "POST",
      headers: { authorization: `Bearer ${key.secret}` },
      body: "{}",
    });
    expect([answer.status, answer.headers.get("allow")]).toEqual([405, "GET"]);
  });
});
