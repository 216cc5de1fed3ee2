import { z } from "@tollgate/core/schemas";
import { adminGrantSchema } from "./grant.ts";
import { operation } from "./operation.ts";
import { membersOf, pageOf, paging, schemas, split } from "./parameter-shapes.ts";
import * as records from "./records.ts";

const counted = z.object({ count: records.count });
const { within: _within, ...tokenCreation } = membersOf(schemas["adminTokens.create"]);

/** The operations on tokens. They are for all organizations: a token could name any. */
export const adminTokens = {
  "adminTokens.list": operation({
    method: "GET",
    path: "/tokens",
    summary: "Tokens for the admin API, newest first, without their secrets.",
    role: "admin",
    platform: true,
    input: paging,
    output: pageOf(records.adminTokenRecord),
    call: ({ adminTokens }, input) => adminTokens.list(split(input).page),
  }),
  "adminTokens.create": operation({
    method: "POST",
    path: "/tokens",
    summary: "Creates a token for the admin API. Its secret is in this answer only.",
    role: "admin",
    platform: true,
    created: ({ token }) => token.id,
    input: tokenCreation,
    output: records.createdAdminToken,
    call: ({ adminTokens }, input, { actor, transcripts }) =>
      adminTokens.create({
        ...input,
        within: transcripts === undefined ? {} : { transcripts },
        actor,
      }),
  }),
  "adminTokens.get": operation({
    method: "GET",
    path: "/tokens/{id}",
    summary: "One token for the admin API, without its secret.",
    role: "admin",
    platform: true,
    input: schemas["adminTokens.get"].shape,
    output: records.adminTokenRecord,
    call: ({ adminTokens }, input) => adminTokens.get(input),
  }),
  "adminTokens.revoke": operation({
    method: "POST",
    path: "/tokens/{id}/revoke",
    summary: "Revokes a token for the admin API.",
    role: "admin",
    platform: true,
    input: membersOf(schemas["adminTokens.revoke"]),
    output: records.adminTokenRecord,
    call: ({ adminTokens }, input, { actor }) => adminTokens.revoke({ ...input, actor }),
  }),
};

/** The operations on all records. */
export const maintenance = {
  "budgets.reconcile": operation({
    method: "POST",
    path: "/maintenance/reconcile",
    summary: "Compares every counter with its ledger, and changes nothing.",
    role: "admin",
    platform: true,
    isMaintenance: true,
    audited: false,
    input: {},
    output: records.budgetReconciliation,
    call: ({ budgets }) => budgets.reconcile(),
  }),
  reconcileUsage: operation({
    method: "POST",
    path: "/maintenance/reconcile-usage",
    summary:
      "Adds up Steps again and compares them with the hourly sums. Repairs those if `repair` is true.",
    role: "admin",
    platform: true,
    isMaintenance: true,
    audited: false,
    input: schemas["usage.reconcile"].shape,
    output: records.usageReconciliation,
    call: (administration, input) => administration.reconcileUsage(input),
  }),
  "connections.reseal": operation({
    method: "POST",
    path: "/maintenance/reseal",
    summary: "Wraps every data key with the current key-encryption key.",
    role: "admin",
    platform: true,
    isMaintenance: true,
    input: {},
    output: records.resealResult,
    call: ({ connections }, _input, { actor }) => connections.reseal({ actor }),
  }),
  recover: operation({
    method: "POST",
    path: "/maintenance/recover",
    summary: "Settles the Steps of dead processes.",
    role: "admin",
    platform: true,
    isMaintenance: true,
    audited: false,
    input: {},
    output: counted,
    call: async (administration) => ({ count: await administration.recover() }),
  }),
  sweep: operation({
    method: "POST",
    path: "/maintenance/sweep",
    summary: "Removes and erases records that are older than `retention` allows.",
    role: "admin",
    platform: true,
    isMaintenance: true,
    audited: false,
    input: {},
    output: counted,
    call: async (administration) => ({ count: await administration.sweep() }),
  }),
};

/** The operations on the process, its configuration, the API and the sign-in. */
export const own = {
  status: operation({
    method: "GET",
    path: "/status",
    summary: "How busy the answering process is.",
    role: "viewer",
    platform: true,
    input: {},
    output: records.gatewayStatus,
    call: async (administration) => administration.status(),
  }),
  models: operation({
    method: "GET",
    path: "/models",
    summary: "The models that gateways list, with their current prices.",
    role: "viewer",
    input: paging,
    output: pageOf(records.modelRecord),
    call: (administration, input) => administration.models(split(input).page),
  }),
  policy: operation({
    method: "GET",
    path: "/policy",
    summary: "The version of the policy, and its rules if it is written as rules.",
    role: "viewer",
    platform: true,
    input: {},
    output: records.policyRecord,
    call: (administration) => administration.policy(),
  }),
  openApi: operation({
    method: "GET",
    path: "/openapi.json",
    summary: "The OpenAPI document of this API.",
    role: "viewer",
    input: {},
    output: records.openApi,
    call: async (_administration, _input, _grant, describe) => describe(),
  }),
  me: operation({
    method: "GET",
    path: "/me",
    summary: "Who is signed in, and what they may do.",
    role: "viewer",
    input: {},
    output: adminGrantSchema,
    call: async (_administration, _input, grant) => grant,
  }),
};
