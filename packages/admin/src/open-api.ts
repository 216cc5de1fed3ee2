import { codesOfAdminStatus } from "@tollgate/core/administration";
import { type JsonSchema, jsonSchemaOf, type Schema, z } from "@tollgate/core/schemas";
import type { Route } from "./operation.ts";
import { operations } from "./operations.ts";
import * as records from "./records.ts";

/** The records that answers refer to, by their names in the document. */
const named: readonly (readonly [Schema<unknown>, string])[] = [
  [records.keyRecord, "Key"],
  [records.keyWithSecret, "KeyWithSecret"],
  [records.createdKey, "CreatedKey"],
  [records.adminTokenRecord, "AdminToken"],
  [records.createdAdminToken, "CreatedAdminToken"],
  [records.modelRecord, "Model"],
  [records.policyRecord, "Policy"],
  [records.gatewayStatus, "Status"],
  [records.connectionRecord, "Connection"],
  [records.budgetRecord, "Budget"],
  [records.budgetRaise, "BudgetRaise"],
  [records.budgetStatus, "BudgetStatus"],
  [records.rateLimitRecord, "RateLimit"],
  [records.rateLimitStatus, "RateLimitStatus"],
  [records.stepRecord, "Step"],
  [records.activityRecord, "Activity"],
  [records.usageSummary, "UsageSummary"],
  [records.usageBucket, "UsageBucket"],
  [records.repricedAttempt, "RepricedAttempt"],
  [records.stepContent, "StepContent"],
  [records.sessionRecord, "Session"],
  [records.transcriptEntry, "TranscriptEntry"],
  [records.decisionRecord, "Decision"],
  [records.changeRecord, "Change"],
];
const components: ReadonlyMap<unknown, string> = new Map(named);

/** The description of each error, by its status. */
const errors: ReadonlyMap<number, string> = new Map([
  [400, "A parameter is missing, unknown or invalid: `param` is its path."],
  [401, "Nobody is signed in."],
  [403, "The grant doesn't permit it, or another site sent the request."],
  [404, "The record doesn't exist, or belongs to another organization."],
  [409, "The record already exists, or is in the wrong state."],
  [412, "The record has changed since it was read."],
  [413, "The request is too large."],
  [415, "The body isn't JSON."],
  [422, "The `Idempotency-Key` was used with other arguments."],
  [428, "`If-Match` is required."],
  [429, "Too many failed sign-ins."],
  [500, "The request failed."],
  [503, "The API is busy or closing, or a part that it needs doesn't answer."],
]);

/** The error answers of an operation, by their status. */
function errorsOf({ method, path, replaces, input }: Route): readonly number[] {
  const always = [400, 401, 403, 413, 429, 500, 503];
  const isOfRecords = path.includes("{") || "organizationId" in input || "scope" in input;
  return [
    ...always,
    ...(isOfRecords ? [404] : []),
    ...(method === "POST" ? [409, 415] : []),
    ...("ifMatch" in input ? [412] : []),
    ...("idempotencyKey" in input ? [422] : []),
    ...(replaces === null ? [] : [428]),
  ].sort();
}

function errorAnswer(status: number, description: string): JsonSchema {
  const error = {
    type: "object",
    properties: {
      message: { type: "string" },
      type: { type: "string" },
      param: { type: ["string", "null"] },
      code: { enum: codesOfAdminStatus(status) },
    },
    required: ["message", "type", "param", "code"],
    additionalProperties: false,
  };
  const schema = {
    type: "object",
    properties: { error },
    required: ["error"],
    additionalProperties: false,
  };
  return { description, content: { "application/json": { schema } } };
}

const about = "The administration of a Tollgate gateway, below the path where it is mounted.";
const pages =
  "A page of a list can be short or empty and yet have a `nextCursor`, because a filter without an index scans at most 20,000 rows for each page.";

/** The OpenAPI 3.1 document of the admin API, made from its table of operations. */
export function openApiDocument(): JsonSchema {
  const paths: Record<string, Record<string, unknown>> = {};
  for (const [name, route] of routes()) {
    const methods = paths[`/admin/v1${route.path}`] ?? {};
    paths[`/admin/v1${route.path}`] = methods;
    methods[route.method.toLowerCase()] = operationOf(name, route);
  }
  return {
    openapi: "3.1.1",
    info: {
      title: "Tollgate admin API",
      version: "1",
      description: `${about} ${pages}`,
      license: { name: "MIT", identifier: "MIT" },
    },
    servers: [{ url: "/", description: "Where the admin API is mounted." }],
    security: [{ bearer: [] }],
    tags: [...new Set(routes().map(([, route]) => tagOf(route)))].map((name) => ({ name })),
    paths,
    components: {
      securitySchemes: { bearer: { type: "http", scheme: "bearer" } },
      schemas: componentSchemas(),
      responses: Object.fromEntries(
        [...errors].map(([status, description]) => [status, errorAnswer(status, description)]),
      ),
    },
  };
}

/** Every operation and its name, in the order of the table. */
export function routes(): readonly (readonly [name: string, route: Route])[] {
  return Object.entries(operations);
}

function componentSchemas(): JsonSchema {
  return Object.fromEntries(named.map(([record, name]) => [name, answerSchema(record)]));
}

function operationOf(name: string, route: Route): JsonSchema {
  const isPost = route.method === "POST";
  const isTaggedRead = route.method === "GET" && route.isTagged;
  const { ifMatch, idempotencyKey, ...input } = route.input;
  const members = Object.entries(input).map(([member, schema]) => ({
    member,
    schema,
    isPath: route.path.includes(`{${member}}`),
  }));
  const outside = members.filter(({ isPath }) => isPath || !isPost);
  const inside = members.filter(({ isPath }) => !isPath && isPost);
  const parameters = [
    ...outside.flatMap(parametersOf),
    ...(isTaggedRead ? [ifNoneMatchHeader] : []),
    ...(ifMatch ? [{ ...ifMatchHeader, required: route.replaces !== null }] : []),
    ...(idempotencyKey ? [{ ...idempotencyKeyHeader, schema: inputSchema(idempotencyKey) }] : []),
  ];
  const headers = {
    ...(route.isTagged ? { ETag: etagHeader } : {}),
    ...(idempotencyKey ? { "Idempotency-Replayed": replayedHeader } : {}),
  };
  return {
    operationId: name,
    tags: [tagOf(route)],
    summary: route.summary,
    "x-role": route.role,
    "x-audited": route.audited,
    ...(route.platform ? { "x-every-organization": true } : {}),
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(isPost ? { requestBody: bodyOf(inside) } : {}),
    responses: {
      [route.creates ? "201" : "200"]: {
        description: route.creates ? "The new record." : "The answer.",
        ...(Object.keys(headers).length === 0 ? {} : { headers }),
        content: contentOf(route),
      },
      ...(isTaggedRead
        ? { 304: { description: "The record still matches `If-None-Match`.", headers } }
        : {}),
      ...Object.fromEntries(
        errorsOf(route).map((status) => [status, { $ref: `#/components/responses/${status}` }]),
      ),
    },
  };
}

const ifMatchHeader = {
  name: "If-Match",
  in: "header",
  description:
    "The `ETag` of the record as it was read. If it has changed since, the answer is 412.",
  schema: { type: "string" },
};
const ifNoneMatchHeader = {
  name: "If-None-Match",
  in: "header",
  description:
    "The `ETag` of the record as the caller has it. If it is the same, the answer is 304.",
  schema: { type: "string" },
};
const idempotencyKeyHeader = {
  name: "Idempotency-Key",
  in: "header",
  description:
    "1 to 255 visible ASCII characters. A repeat with the same value creates nothing and returns the existing record, without its secret. If its arguments differ, it gets 422.",
};
const replayedHeader = {
  description: "`true` if an earlier request with this `Idempotency-Key` created the record.",
  schema: { const: "true" },
};
const etagHeader = {
  description: "The tag of the record, for `If-Match` and `If-None-Match`.",
  schema: { type: "string" },
};

interface Member {
  readonly member: string;
  readonly schema: Schema<unknown>;
  readonly isPath: boolean;
}

/** A parameter. The members of an object are separate parameters, with a dot. */
function parametersOf({ member, schema, isPath }: Member): readonly JsonSchema[] {
  const described = inputSchema(schema);
  const { properties } = described;
  if (typeof properties === "object" && properties !== null)
    return Object.entries(properties).map(([name, inner]) => ({
      name: `${member}.${name}`,
      in: "query",
      schema: inner,
    }));
  return [
    {
      name: member,
      in: isPath ? "path" : "query",
      ...(isPath || isRequired(member, schema) ? { required: true } : {}),
      ...(member === "metadata"
        ? { description: "Write `metadata.NAME=value` for each pair." }
        : {}),
      schema: described,
    },
  ];
}

function bodyOf(members: readonly Member[]): JsonSchema {
  const required = members.flatMap(({ member, schema }) =>
    isRequired(member, schema) ? member : [],
  );
  const schema = {
    type: "object",
    properties: Object.fromEntries(
      members.map(({ member, schema }) => [member, inputSchema(schema)]),
    ),
    ...(required.length === 0 ? {} : { required }),
    additionalProperties: false,
  };
  return { required: true, content: { "application/json": { schema } } };
}

/** The organization may be left out by a grant for one. */
function isRequired(member: string, { _zod: { optin } }: Schema<unknown>): boolean {
  return member !== "organizationId" && optin === undefined;
}

function contentOf({ output }: Route): JsonSchema {
  if (output !== "file") return { "application/json": { schema: referenceTo(output) } };
  const schema = { type: "string" };
  return { "text/csv": { schema }, "application/x-ndjson": { schema } };
}

function referenceTo(output: Schema<unknown>): JsonSchema {
  const name = components.get(output);
  return name === undefined ? answerSchema(output) : { $ref: `#/components/schemas/${name}` };
}

function inputSchema(schema: Schema<unknown>): JsonSchema {
  const { $schema: _version, ...described } = jsonSchemaOf(schema);
  return described;
}

/** The schema of an answer, with a reference to each record inside. */
function answerSchema(schema: Schema<unknown>): JsonSchema {
  const whole: unknown = schema;
  const { $schema: _version, ...described } = z.toJSONSchema(schema, {
    io: "output",
    unrepresentable: "any",
    override({ zodSchema, jsonSchema }) {
      const name = components.get(zodSchema);
      if (name === undefined || zodSchema === whole) return;
      for (const key of Object.keys(jsonSchema)) Reflect.deleteProperty(jsonSchema, key);
      jsonSchema.$ref = `#/components/schemas/${name}`;
    },
  });
  return described;
}

function tagOf({ path }: Route): string {
  return path.split("/")[1] ?? "";
}
