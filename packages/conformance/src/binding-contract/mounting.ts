import { describe, expect, it } from "vitest";
import type { Binding } from "./binding.ts";
import { bodies, chatPath, drive, errorOf, model, responsesPath } from "./drive.ts";

/** The gateway at a path of the host's choice. */
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

    it("knows a model by its whole id, its slashes encoded or not", async () => {
      const { call } = await drive(binding);
      for (const id of [model, encodeURIComponent(model)]) {
        const answer = await call(`/v1/models/${id}?from=test`);
        expect(await answer.json()).toMatchObject({ id: model, object: "model" });
      }
    });

    it("gives, lists and deletes a stored response", async () => {
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

    it("refuses a method that a path does not take", async () => {
      const { call } = await drive(binding);
      expect((await call(chatPath)).status).toBe(405);
      expect((await call(chatPath, { method: "PATCH" })).status).toBe(405);
    });
  });
}
