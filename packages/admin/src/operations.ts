import {
  activityDimensionsSchema,
  dimensionsSchema,
  exportOptions,
  seriesOptions,
} from "@tollgate/core/administration";
import { priceTableSchema, z } from "@tollgate/core/schemas";
import { adminTokens, maintenance, own } from "./gateway-operations.ts";
import { reading } from "./grant.ts";
import { budgets, rateLimits } from "./limit-operations.ts";
import { operation } from "./operation.ts";
import { allOf, deleted, membersOf, pageOf, paging, schemas, split } from "./parameter-shapes.ts";
import * as records from "./records.ts";

const [ofKey, ofUser] = schemas["keys.revoke"]._zod.def.options;
const keyReference = membersOf(schemas["keys.get"]);
const keyRevocation = membersOf(ofKey);
const recordReference = schemas["steps.get"].shape;
const stepFilter = schemas["steps.list"].shape;
const activityFilter = schemas["activity.list"].shape;
const decisionFilter = schemas["decisions.list"].shape;
const format = exportOptions.shape;
const changeFilter = schemas["changes.list"].shape;
const { from, count } = schemas["sessions.transcript"].shape;

const keys = {
  "keys.list": operation({
    method: "GET",
    path: "/keys",
    summary: "API keys, newest first.",
    role: "viewer",
    input: { ...schemas["keys.list"].shape, ...paging },
    output: pageOf(records.keyRecord),
    call: ({ keys }, input) => {
      const { filter, page } = split(input);
      return keys.list(filter, page);
    },
  }),
  "keys.create": operation({
    method: "POST",
    path: "/keys",
    summary: "Creates an API key. Its secret is in this answer only.",
    role: "operator",
    created: ({ key }) => key.id,
    input: membersOf(schemas["keys.create"]),
    output: records.createdKey,
    call: ({ keys }, input, { actor }) => keys.create({ ...input, actor }),
  }),
  "keys.revokeOfUser": operation({
    method: "POST",
    path: "/keys/revoke",
    summary: "Revokes all keys of a user, and returns how many it revoked.",
    role: "operator",
    input: membersOf(ofUser),
    output: records.revokedKeys,
    call: ({ keys }, input, { actor }) => keys.revoke({ ...input, actor }),
  }),
  "keys.get": operation({
    method: "GET",
    path: "/keys/{id}",
    summary: "One API key, without its secret.",
    role: "viewer",
    input: keyReference,
    isTagged: true,
    output: records.keyRecord,
    call: ({ keys }, input) => keys.get(input),
  }),
  "keys.update": operation({
    method: "POST",
    path: "/keys/{id}",
    summary: "Changes the given members of an API key. Without any, nothing is recorded.",
    role: "operator",
    input: membersOf(schemas["keys.update"]),
    isTagged: true,
    output: records.keyRecord,
    call: ({ keys }, input, { actor }) => keys.update({ ...input, actor }),
  }),
  "keys.rotate": operation({
    method: "POST",
    path: "/keys/{id}/rotate",
    summary: "Gives an API key a new secret, which is in this answer only.",
    role: "admin",
    replaces: "/keys/{id}",
    input: membersOf(schemas["keys.rotate"]),
    output: records.keyWithSecret,
    call: ({ keys }, input, { actor }) => keys.rotate({ ...input, actor }),
  }),
  "keys.revoke": operation({
    method: "POST",
    path: "/keys/{id}/revoke",
    summary: "Revokes an API key.",
    role: "operator",
    input: keyRevocation,
    isTagged: true,
    output: records.keyRecord,
    call: ({ keys }, input, { actor }) => keys.revoke({ ...input, actor }),
  }),
};

const connections = {
  "connections.list": operation({
    method: "GET",
    path: "/connections",
    summary: "Customer-owned connections, without their credentials.",
    role: "viewer",
    input: { ...schemas["connections.list"].shape, ...paging },
    output: pageOf(records.connectionRecord),
    call: ({ connections }, input) => {
      const { filter, page } = split(input);
      return connections.list(filter, page);
    },
  }),
  "connections.get": operation({
    method: "GET",
    path: "/connections/{gateway}",
    summary: "An organization's connection to a gateway.",
    role: "viewer",
    input: schemas["connections.get"].shape,
    isTagged: true,
    output: records.connectionRecord,
    call: ({ connections }, input) => connections.get(input),
  }),
  "connections.set": operation({
    method: "POST",
    path: "/connections/{gateway}",
    summary: "Seals an organization's credential. No answer ever contains it.",
    role: "admin",
    input: membersOf(schemas["connections.set"]),
    isTagged: true,
    output: records.connectionRecord,
    call: ({ connections }, input, { actor }) => connections.set({ ...input, actor }),
  }),
  "connections.remove": operation({
    method: "DELETE",
    path: "/connections/{gateway}",
    summary: "Deletes an organization's credential.",
    role: "admin",
    input: membersOf(schemas["connections.remove"]),
    output: deleted,
    call: async ({ connections }, input, { actor }) => {
      await connections.remove({ ...input, actor });
      return { id: input.gateway, deleted: true as const };
    },
  }),
};

const activity = {
  "activity.list": operation({
    method: "GET",
    path: "/activity",
    summary: "Successful completions, newest first.",
    role: "viewer",
    input: { ...activityFilter, ...paging },
    output: pageOf(records.activityRecord),
    call: ({ activity }, input) => {
      const { filter, page } = split(input);
      return activity.list(filter, page);
    },
  }),
  "activity.summarize": operation({
    method: "GET",
    path: "/activity/summary",
    summary: "Sums of completed Steps, the most expensive row first.",
    role: "viewer",
    isHeavy: true,
    input: { ...activityFilter, by: z.exactOptional(activityDimensionsSchema) },
    output: allOf(records.usageSummary),
    call: async ({ activity }, { by = [], ...filter }) => ({
      data: await activity.summarize(filter, by),
    }),
  }),
  "activity.export": operation({
    method: "GET",
    path: "/activity/export",
    summary: "Successful completions as CSV or JSON Lines.",
    role: "operator",
    isHeavy: true,
    input: { ...activityFilter, ...format },
    output: "file",
    call: async ({ activity }, { format, ...filter }) => activity.export(filter, { format }),
  }),
};

const steps = {
  "steps.list": operation({
    method: "GET",
    path: "/steps",
    summary: "Every Step, newest first.",
    role: "viewer",
    input: { ...stepFilter, ...paging },
    output: pageOf(records.stepRecord),
    call: ({ steps }, input) => {
      const { filter, page } = split(input);
      return steps.list(filter, page);
    },
  }),
  "steps.summarize": operation({
    method: "GET",
    path: "/steps/summary",
    summary: "Sums of Steps by one or several dimensions, the most expensive row first.",
    role: "viewer",
    isHeavy: true,
    input: { ...stepFilter, by: z.exactOptional(dimensionsSchema) },
    output: allOf(records.usageSummary),
    call: async ({ steps }, { by = [], ...filter }) => ({
      data: await steps.summarize(filter, by),
    }),
  }),
  "steps.series": operation({
    method: "GET",
    path: "/steps/series",
    summary: "Sums of Steps by hour or day, oldest first.",
    role: "viewer",
    isHeavy: true,
    input: { ...stepFilter, ...seriesOptions.shape },
    output: allOf(records.usageBucket),
    call: async ({ steps }, { bucket, by = [], ...filter }) => ({
      data: await steps.series(filter, { bucket, by }),
    }),
  }),
  "steps.export": operation({
    method: "GET",
    path: "/steps/export",
    summary: "Steps as CSV or JSON Lines.",
    role: "operator",
    isHeavy: true,
    input: { ...stepFilter, ...format },
    output: "file",
    call: async ({ steps }, { format, ...filter }) => steps.export(filter, { format }),
  }),
  "steps.reprice": operation({
    method: "POST",
    path: "/steps/reprice",
    summary: "The cost of attempts at other prices. Corrects them if `apply` is true.",
    role: "admin",
    input: {
      ...stepFilter,
      prices: priceTableSchema,
      apply: z.exactOptional(z.boolean()),
      ...paging,
    },
    output: pageOf(records.repricedAttempt),
    call: ({ steps }, { prices, apply = false, ...input }, { actor }) => {
      const { filter, page } = split(input);
      return steps.reprice(filter, { prices, apply, actor }, page);
    },
  }),
  "steps.get": operation({
    method: "GET",
    path: "/steps/{id}",
    summary: "One Step with its attempts.",
    role: "viewer",
    input: recordReference,
    output: records.stepRecord,
    call: ({ steps }, input) => steps.get(input),
  }),
  "steps.content": operation({
    method: "GET",
    path: "/steps/{id}/content",
    summary: "The recorded content of one Step. Requires the right to read transcripts.",
    role: "viewer",
    audited: true,
    input: recordReference,
    output: records.stepContent,
    call: ({ steps }, input, grant) => steps.content({ ...input, ...reading(grant) }),
  }),
  "steps.correct": operation({
    method: "POST",
    path: "/steps/{id}/corrections",
    summary: "Corrects the usage or the cost of an attempt.",
    role: "admin",
    input: membersOf(schemas["steps.correct"]),
    output: records.stepRecord,
    call: ({ steps }, input, { actor }) => steps.correct({ ...input, actor }),
  }),
};

const sessions = {
  "sessions.list": operation({
    method: "GET",
    path: "/sessions",
    summary: "Sessions, most recently updated first, without their content.",
    role: "viewer",
    input: { ...schemas["sessions.list"].shape, ...paging },
    output: pageOf(records.sessionRecord),
    call: ({ sessions }, input) => {
      const { filter, page } = split(input);
      return sessions.list(filter, page);
    },
  }),
  "sessions.get": operation({
    method: "GET",
    path: "/sessions/{id}",
    summary: "One Session, without its content.",
    role: "viewer",
    input: recordReference,
    output: records.sessionRecord,
    call: ({ sessions }, input) => sessions.get(input),
  }),
  "sessions.lineage": operation({
    method: "GET",
    path: "/sessions/{id}/lineage",
    summary: "A Session, the one that it branched from, and so on to the first.",
    role: "viewer",
    input: { ...recordReference, ...paging },
    output: pageOf(records.sessionRecord),
    call: ({ sessions }, input) => {
      const { filter, page } = split(input);
      return sessions.lineage(filter, page);
    },
  }),
  "sessions.transcript": operation({
    method: "GET",
    path: "/sessions/{id}/transcript",
    summary: "Up to 1,000 messages of a Session. Requires the right to read transcripts.",
    role: "viewer",
    audited: true,
    input: { ...recordReference, from, count },
    output: allOf(records.transcriptEntry),
    call: async ({ sessions }, input, grant) => ({
      data: await sessions.transcript({ ...input, ...reading(grant) }),
    }),
  }),
};

const evidence = {
  "decisions.list": operation({
    method: "GET",
    path: "/decisions",
    summary: "Policy decisions, newest first.",
    role: "viewer",
    input: { ...decisionFilter, ...paging },
    output: pageOf(records.decisionRecord),
    call: ({ decisions }, input) => {
      const { filter, page } = split(input);
      return decisions.list(filter, page);
    },
  }),
  "decisions.export": operation({
    method: "GET",
    path: "/decisions/export",
    summary: "Policy decisions as CSV or JSON Lines.",
    role: "operator",
    isHeavy: true,
    input: { ...decisionFilter, ...format },
    output: "file",
    call: async ({ decisions }, { format, ...filter }) => decisions.export(filter, { format }),
  }),
  "decisions.get": operation({
    method: "GET",
    path: "/decisions/{id}",
    summary: "One policy decision.",
    role: "viewer",
    input: recordReference,
    output: records.decisionRecord,
    call: ({ decisions }, input) => decisions.get(input),
  }),
  "changes.list": operation({
    method: "GET",
    path: "/changes",
    summary: "Administrative changes with their actors, newest first.",
    role: "viewer",
    input: { ...changeFilter, ...paging },
    output: pageOf(records.changeRecord),
    call: ({ changes }, input) => {
      const { filter, page } = split(input);
      return changes.list(filter, page);
    },
  }),
  "changes.export": operation({
    method: "GET",
    path: "/changes/export",
    summary: "Administrative changes with their actors as CSV or JSON Lines.",
    role: "operator",
    isHeavy: true,
    input: { ...changeFilter, ...format },
    output: "file",
    call: async ({ changes }, { format, ...filter }) => changes.export(filter, { format }),
  }),
};

/** Every operation of the admin API, by name. The router, the client, the reference and the OpenAPI document are read from it. */
export const operations = {
  ...keys,
  ...budgets,
  ...rateLimits,
  ...connections,
  ...activity,
  ...steps,
  ...sessions,
  ...evidence,
  ...adminTokens,
  ...maintenance,
  ...own,
};
