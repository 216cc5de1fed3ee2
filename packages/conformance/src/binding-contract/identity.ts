import type { Authenticate } from "@tollgate/core";
import { describe, expect, it } from "vitest";
import type { Binding } from "./binding.ts";
import { bodies, chatPath, drive, errorOf } from "./drive.ts";

const caller = { organizationId: "organization-1", userId: "ada", label: "web", source: "app" };

/** Callers whom the host knows by its own means. */
export function describeIdentity(binding: Binding): void {
  describe("a caller whom the host knows", () => {
    it("is known by the request as it came: method, URL and headers; its body is left", async () => {
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

    it("is guessed of nobody when the host fails: 503", async () => {
      const authenticate = () => Promise.reject(new Error("canary"));
      const { call } = await drive(binding, {}, { authenticate });
      const answer = await call("/v1/models");
      expect(answer.status).toBe(503);
      const error = await errorOf(answer);
      expect(error).toMatchObject({ code: "authentication_unavailable" });
      expect(JSON.stringify(error)).not.toContain("canary");
    });

    it("may be the one caller of a mount", async () => {
      const as: Binding = {
        ...binding,
        serve: ({ as, ...gateway }, mounting) =>
          binding.serve({ ...gateway, as, ...as(caller) }, mounting),
      };
      const { post } = await drive(as);
      const answer = await post(chatPath, bodies[chatPath](), { authorization: "Bearer nonsense" });
      expect(answer.status).toBe(200);
      await answer.text();
    });
  });
}
