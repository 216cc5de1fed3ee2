import type { Authenticate } from "@tollgate/core";
import { describe, expect, it } from "vitest";
import type { Binding } from "./binding.ts";
import { bodies, chatPath, drive, errorOf, model, responsesPath } from "./drive.ts";

/** A gateway mounted at a path of the host's choice. */
export function describeMounting(binding: Binding): void {
  describe("mounted at a path", () => {
    it.each(["/ai", "/a/longer/path", "/a%20b", "/%C3%A9t%C3%A9", "/v1/inner"])(
      "answers below %s",
      async (prefix) => {
        const { call, post, provider } = await drive(binding, { prefix });
        provider.reply("Hello below a prefix");
        const answer = await post(chatPath, bodies[chatPath]());
        expect(await answer.text()).toContain("Hello below a prefix");
        const models = await call("/v1/models");
        expect(await models.text()).toContain(model);
      },
    );

    it("finds a model by its full id, with its slashes encoded or not", async () => {
      const { call } = await drive(binding);
      for (const id of [model, encodeURIComponent(model)]) {
        const answer = await call(`/v1/models/${id}?from=test`);
        expect(await answer.json()).toMatchObject({ id: model, object: "model" });
      }
    });

    it("returns, lists and deletes a stored response", async () => {
      const { call, post } = await drive(binding);
      const created: unknown = await (await post(responsesPath, bodies[responsesPath]())).json();
      const id = typeof created === "object" && created && "id" in created ? created.id : null;
      const stored = await call(`${responsesPath}/${id}`);
      expect(await stored.json()).toMatchObject({ id, status: "completed" });
      const items = await call(`${responsesPath}/${id}/input_items?limit=1`);
      expect(await items.json()).toMatchObject({ object: "list", data: [{ role: "user" }] });
      const deleted = await call(`${responsesPath}/${id}`, { method: "DELETE" });
      expect(await deleted.json()).toMatchObject({ id, deleted: true });
      expect((await call(`${responsesPath}/${id}`)).status).toBe(404);
    });

    it.each(["/v1/nothing", "/v1", "/", "/chat/completions", "/v1/models;x"])(
      "answers %s with 404 in the shape of the API",
      async (path) => {
        const { call } = await drive(binding);
        const answer = await call(path);
        expect(answer.status).toBe(404);
        expect(await errorOf(answer)).toMatchObject({ code: "not_found" });
      },
    );

    it("rejects a method that a path doesn't support", async () => {
      const { call } = await drive(binding);
      expect((await call(chatPath)).status).toBe(405);
      expect((await call(chatPath, { method: "PATCH" })).status).toBe(405);
    });
  });
}

const caller = { organizationId: "organization-1", userId: "ada", label: "web", source: "app" };

/** Callers that the host authenticates itself. */
export function describeIdentity(binding: Binding): void {
  describe("a caller authenticated by the host", () => {
    it("is identified by the method, URL and headers of the original request, with the body unread", async () => {
      const seen: string[] = [];
      const authenticate: Authenticate = (request) => {
        seen.push(`${request.method} ${new URL(request.url).pathname}`);
        return request.headers.get("cookie")?.includes("session=ada") ? caller : null;
      };
      const { call, post, gateway, prefix } = await drive(binding, {}, { authenticate });
      const cookie = "theme=dark; session=ada";
      const answer = await post(chatPath, bodies[chatPath](), { cookie, authorization: "" });
      expect(answer.status).toBe(200);
      await answer.text();
      expect((await call("/v1/models", { headers: { cookie } })).status).toBe(200);
      expect((await call("/v1/models")).status).toBe(200);
      expect((await call("/v1/models", { headers: { authorization: "" } })).status).toBe(401);
      expect(seen[0]).toBe(`POST ${prefix}${chatPath}`);
      expect(seen.slice(1)).toEqual(Array(3).fill(`GET ${prefix}/v1/models`));
      const { data } = await gateway.activity.list({ organizationId: caller.organizationId });
      expect(data).toMatchObject([{ userId: "ada", keyLabel: "web", source: "app" }]);
    });

    it("is answered with 503 if the host fails to identify it", async () => {
      const authenticate = () => Promise.reject(new Error("canary"));
      const { call } = await drive(binding, {}, { authenticate });
      const answer = await call("/v1/models");
      expect(answer.status).toBe(503);
      const error = await errorOf(answer);
      expect(error).toMatchObject({ code: "authentication_unavailable" });
      expect(JSON.stringify(error)).not.toContain("canary");
    });

    it("may be the only caller of a mount", async () => {
      const { post } = await drive(binding, {}, {}, ({ as }) => as(caller));
      const answer = await post(chatPath, bodies[chatPath](), { authorization: "Bearer nonsense" });
      expect(answer.status).toBe(200);
      await answer.text();
    });
  });
}
