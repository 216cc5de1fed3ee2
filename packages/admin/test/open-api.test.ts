import { createConfig, lintFromString } from "@redocly/openapi-core";
import { Ajv2020 } from "ajv/dist/2020.js";
import { describe, expect, it } from "vitest";
import { type AdminGrant, openApiDocument } from "../src/index.ts";
import { createWorld, routes, sampleOf } from "./world.ts";

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

  it("describes the answer of every operation, and every error", async () => {
    const { call, acme, rival } = await createWorld();
    const ajv = new Ajv2020({ strict: false });
    ajv.addSchema({ $id: "admin", ...openApiDocument() });
    const check = (pointer: string, answer: unknown): void => {
      const validate = ajv.getSchema(`admin#${pointer}`);
      if (validate === undefined) throw new Error(`The document has no ${pointer}.`);
      expect([pointer, validate(answer), validate.errors]).toEqual([pointer, true, null]);
    };
    const json = async (answer: Response): Promise<unknown> =>
      JSON.parse(Buffer.from(await answer.arrayBuffer()).toString());
    // Removals come last, and those of a part before those of the whole.
    const turnOf = ([name, { path }]: (typeof routes)[number]) =>
      /remove|revoke|cancel/.test(name) ? 100 - path.length : 0;
    for (const [name, route] of routes.toSorted((a, b) => turnOf(a) - turnOf(b))) {
      if (route.output === "file") continue;
      const answer = await call(
        grant,
        sampleOf([name, route], name === "keys.revoke" ? rival : acme),
      );
      const at = `/admin/v1${route.path}`.replaceAll("~", "~0").replaceAll("/", "~1");
      const path = `/paths/${encodeURIComponent(at)}/${route.method.toLowerCase()}`;
      check(
        `${path}/responses/${answer.status}/content/application~1json/schema`,
        await json(answer),
      );
      check(
        "/components/schemas/Error",
        await json(await call(null, sampleOf([name, route], acme))),
      );
    }
  });
});
