import { createConfig, lintFromString } from "@redocly/openapi-core";
import { describe, expect, it } from "vitest";
import { type AdminGrant, openApiDocument } from "../src/index.ts";
import { checkAnswer } from "./documented-answers.ts";
import { createWorld, routes, sampleOf, urlOf } from "./world.ts";

const grant: AdminGrant = {
  actor: "root",
  organizations: "all",
  role: "admin",
  transcripts: { upTo: "D3_RESTRICTED" },
};

describe("the OpenAPI document of the admin API", () => {
  it("is valid OpenAPI 3.1", async () => {
    const config = await createConfig({ extends: ["spec"] });
    const source = JSON.stringify(openApiDocument());
    const problems = await lintFromString({ source, absoluteRef: "admin-openapi.json", config });
    expect(
      problems.map(({ ruleId, message, location }) => [ruleId, message, location[0]?.pointer]),
    ).toEqual([]);
  });

  it("has every operation of the table, and no other", () => {
    const { paths } = openApiDocument();
    const documented = Object.entries(Object(paths)).flatMap(([path, methods]) =>
      Object.keys(Object(methods)).map((method) => `${method.toUpperCase()} ${path}`),
    );
    const table = routes.map(([, { method, path }]) => `${method} /admin/v1${path}`);
    expect(documented.toSorted()).toEqual(table.toSorted());
  });

  it("says that no number of an answer is below 0, except for differences and amounts left", () => {
    const signed = new Set<string>();
    const visit = (at: unknown, path: readonly string[]): void => {
      const { type, minimum, ...members } = Object(at);
      if (type === "integer" && !(minimum >= 0)) signed.add(path.slice(-2).join("."));
      const isStructure = !("type" in Object(at));
      for (const [name, inner] of Object.entries(members))
        if (typeof inner === "object") visit(inner, isStructure ? [...path, name] : path);
    };
    visit(openApiDocument(), []);
    expect([...signed].filter((name) => !name.startsWith("missing."))).toEqual([
      "drift.settled",
      "drift.held",
      "ledger.settled",
      "ledger.held",
      "BudgetStatus.remaining",
      "RepricedAttempt.differenceNanoUsd",
      "0.left",
      "1.left",
    ]);
  });

  it("requires a body for every operation that answers 415 without one", async () => {
    const { call, acme } = await createWorld();
    const { paths } = openApiDocument();
    for (const [name, route] of routes) {
      const { status } = await call(grant, { ...sampleOf([name, route], acme), body: null });
      const { requestBody } = Object(Object(paths)[`/admin/v1${route.path}`])[
        route.method.toLowerCase()
      ];
      expect([name, Object(requestBody).required ?? false]).toEqual([name, status === 415]);
    }
  });

  it("describes the answers of every operation: to who may ask, who has it already, and nobody", async () => {
    const { call, acme, rival } = await createWorld();
    // Replacements come first, because they need the first tags. Removals come last, those of a part before those of the whole.
    const turnOf = ([name, { path, replaces }]: (typeof routes)[number]) => {
      if (replaces !== null) return -1;
      return /remove|revoke|cancel/.test(name) ? 100 - path.length : 0;
    };
    for (const [name, route] of routes.toSorted((a, b) => turnOf(a) - turnOf(b))) {
      const sample = sampleOf([name, route], name === "keys.revoke" ? rival : acme);
      const asked = { method: route.method, url: urlOf(sample) };
      const answer = await call(grant, sample);
      expect(answer.status).toBe(route.creates ? 201 : 200);
      const tag = answer.headers.get("etag");
      await checkAnswer(asked, answer);
      if (tag !== null && route.method === "GET") {
        const known = await call(grant, { ...sample, headers: { "if-none-match": tag } });
        expect(known.status).toBe(304);
        await checkAnswer(asked, known);
      }
      const refused = await call(null, sample);
      expect(refused.status).toBe(401);
      await checkAnswer(asked, refused);
    }
  });

  it.each([
    ["a status", 418, {}, "no such answer"],
    ["a status of other operations", 422, {}, "no such answer"],
    ["a code", 404, { error: { message: "", type: "", param: null, code: "lost" } }, "code"],
    [
      "a code of another status",
      404,
      { error: { message: "", type: "", param: null, code: "key_not_live" } },
      "code",
    ],
    ["a member", 200, { id: "b", colour: "red" }, "colour"],
    ["a record without members", 200, { id: "b" }, "required"],
  ])("fails an answer with %s that isn't documented", async (_what, status, body, problem) => {
    const asked = { method: "GET", url: "http://host/admin/v1/budgets/b" };
    const answer = Response.json(body, { status });
    await expect(checkAnswer(asked, answer)).rejects.toThrow(problem);
    const text = new Response("b", { headers: { "content-type": "text/plain" } });
    await expect(checkAnswer(asked, text)).rejects.toThrow("no such type");
  });
});
