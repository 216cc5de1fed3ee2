import { everyOrganization } from "@tollgate/core";
import { beforeAll, describe, expect, it } from "vitest";
import { type AdminGrant, openApiDocument } from "../src/index.ts";
import { createWorld, routes, type SampleRequest, sampleOf, type World } from "./world.ts";

const root: AdminGrant = {
  actor: "root",
  organizations: "all",
  role: "admin",
  transcripts: { upTo: "D3_RESTRICTED" },
};

type Json = Readonly<Record<string, unknown>>;

/** A request with one thing wrong, and the path of that. */
interface Violation {
  readonly path: string;
  readonly request: SampleRequest;
}

const membersOf = (value: unknown): Json => Object(value);

/** A schema with the alternatives inside. */
const alternativesOf = (schema: unknown): readonly Json[] => [
  membersOf(schema),
  ...[membersOf(schema)["anyOf"] ?? []].flat().flatMap(alternativesOf),
];

/** Every place in a JSON Schema of an object, and a value that it can't have there. */
function* wrongValues(schema: unknown): Generator<readonly [readonly string[], unknown]> {
  for (const { properties } of alternativesOf(schema))
    for (const [name, inner] of Object.entries(membersOf(properties))) {
      const isObject = alternativesOf(inner).some(
        ({ type, ...others }) => type === "object" || Object.keys(others).length === 0,
      );
      yield [[name], isObject ? 7 : { wrong: true }];
      for (const [path, value] of wrongValues(inner)) yield [[name, ...path], value];
    }
}

function replaced(value: unknown, [name = "", ...rest]: readonly string[], wrong: unknown): Json {
  const members = membersOf(value);
  return { ...members, [name]: rest.length === 0 ? wrong : replaced(members[name], rest, wrong) };
}

/** Requests that break a schema of the body in one place each. */
function* inBody(request: SampleRequest, schema: unknown): Generator<Violation> {
  const body = membersOf(request.body);
  for (const [path, wrong] of wrongValues(schema))
    yield { path: path.join("."), request: { ...request, body: replaced(body, path, wrong) } };
  for (const name of [membersOf(schema)["required"] ?? []].flat().map(String)) {
    const { [name]: _left, ...others } = body;
    yield { path: name, request: { ...request, body: others } };
  }
  yield { path: "wrong", request: { ...request, body: { ...body, wrong: 1 } } };
}

/** Texts that no number, time, name or id can be. Parameters of any text can't be wrong. */
const wrongText = "\u0000";
const ofAnyText = ["subject", "metadata"];

function* inQuery(request: SampleRequest, parameters: unknown): Generator<Violation> {
  for (const { name, in: place } of [parameters ?? []].flat().map(membersOf))
    if (place === "query" && typeof name === "string" && !ofAnyText.includes(name))
      yield {
        path: name,
        request: { ...request, query: { ...request.query, [name]: wrongText } },
      };
  yield { path: "wrong", request: { ...request, query: { ...request.query, wrong: "1" } } };
}

const document = openApiDocument();

describe.each(routes)("%s", (name, route) => {
  let world: World;
  beforeAll(async () => {
    shared ??= createWorld();
    world = await shared;
  });

  it("answers every violation of its schemas with 400 and its path, and changes nothing", async () => {
    const { call, acme, gateway } = world;
    const paths = membersOf(membersOf(document["paths"])[`/admin/v1${route.path}`]);
    const { requestBody, parameters } = membersOf(paths[route.method.toLowerCase()]);
    const content = membersOf(membersOf(requestBody)["content"]);
    const { schema } = membersOf(content["application/json"]);
    const sample = sampleOf([name, route], acme);
    const violations = [
      ...(route.method === "POST" ? inBody(sample, schema) : inQuery(sample, parameters)),
    ];
    expect(violations.length).toBeGreaterThan(0);
    const changes = () => gateway.changes.list({ organizationId: everyOrganization }, { limit: 1 });
    const before = await changes();
    for (const { path, request } of violations) {
      const answer = await call(root, request);
      const body = await answer.text();
      expect([path, answer.status, body]).toEqual([path, 400, body]);
      const { param } = JSON.parse(body).error;
      // An alternative's problem is reported where the alternatives begin, or inside.
      const isNear = param === path || path.startsWith(`${param}.`) || param.startsWith(`${path}.`);
      expect([path, param, isNear, body]).toEqual([path, param, true, body]);
    }
    expect(await changes()).toEqual(before);
  });
});

let shared: Promise<World> | undefined;
