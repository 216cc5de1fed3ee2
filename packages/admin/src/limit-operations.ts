import { type List, listOf, type Paging, pagesById } from "@tollgate/core/administration";
import {
  type AdminGrant,
  requireBudget,
  requireOwnScope,
  requireRateLimit,
  type Scope,
  sees,
} from "./grant.ts";
import { operation } from "./operation.ts";
import { allOf, deleted, membersOf, pageOf, paging, schemas, split } from "./parameter-shapes.ts";
import * as records from "./records.ts";

const limitReference = schemas["budgets.get"].shape;

/** A page of the budgets or rate limits that a grant sees. Its cursor names no other one. */
function listSeen<Row extends { readonly id: string; readonly scope: Scope }>(
  grant: AdminGrant,
  name: string,
  rows: List<Row>,
  page: Paging,
): List<Row> {
  const seen = async (): Promise<readonly Row[]> => {
    const found: Row[] = [];
    for await (const row of rows) if (sees(grant, row.scope)) found.push(row);
    return found;
  };
  return listOf(pagesById(name, seen, {}), (row) => row, page);
}

/** Counters outlive their budget, and tell what another organization used. */
function ownId({ organizations }: AdminGrant) {
  return organizations === "all" ? {} : { unused: true };
}

/** The operations on budgets. */
export const budgets = {
  "budgets.list": operation({
    method: "GET",
    path: "/budgets",
    summary: "Budgets by id. Only those whose scope names no organization outside the grant.",
    role: "viewer",
    input: { ...schemas["budgets.list"].shape, ...paging },
    output: pageOf(records.budgetRecord),
    call: ({ budgets }, input, grant) => {
      const { filter, page } = split(input);
      return listSeen(grant, "budgets", budgets.list(filter), page);
    },
  }),
  "budgets.create": operation({
    method: "POST",
    path: "/budgets",
    summary: "Creates a budget.",
    role: "admin",
    created: ({ id }) => id,
    input: membersOf(schemas["budgets.create"]),
    isTagged: true,
    output: records.budgetRecord,
    call: ({ budgets }, input, grant) => {
      requireOwnScope(grant, input.scope);
      return budgets.create({ ...input, ...ownId(grant), actor: grant.actor });
    },
  }),
  "budgets.get": operation({
    method: "GET",
    path: "/budgets/{id}",
    summary: "One budget.",
    role: "viewer",
    input: limitReference,
    isTagged: true,
    output: records.budgetRecord,
    call: async (administration, { id }, grant) => {
      await requireBudget(administration, grant, { id });
      return administration.budgets.get({ id });
    },
  }),
  "budgets.update": operation({
    method: "POST",
    path: "/budgets/{id}",
    summary: "Replaces scope, limit, mode and warnings of a created budget.",
    role: "admin",
    replaces: "/budgets/{id}",
    input: membersOf(schemas["budgets.update"]),
    isTagged: true,
    output: records.budgetRecord,
    call: async (administration, input, grant) => {
      const asSeen = await requireBudget(administration, grant, input);
      requireOwnScope(grant, input.scope);
      return administration.budgets.update({ ...input, ...asSeen, actor: grant.actor });
    },
  }),
  "budgets.remove": operation({
    method: "DELETE",
    path: "/budgets/{id}",
    summary: "Removes a created budget and its raises.",
    role: "admin",
    input: membersOf(schemas["budgets.remove"]),
    output: deleted,
    call: async (administration, input, grant) => {
      const asSeen = await requireBudget(administration, grant, input);
      await administration.budgets.remove({ ...input, ...asSeen, actor: grant.actor });
      return { id: input.id, deleted: true as const };
    },
  }),
  "budgets.status": operation({
    method: "GET",
    path: "/budgets/{id}/status",
    summary: "The counters of a budget in one period.",
    role: "viewer",
    input: { ...schemas["budgets.status"].shape, ...paging },
    output: pageOf(records.budgetStatus),
    call: async (administration, input, grant) => {
      await requireBudget(administration, grant, input);
      const { filter, page } = split(input);
      return administration.budgets.status(filter, page);
    },
  }),
  "budgets.raises": operation({
    method: "GET",
    path: "/budgets/{id}/raises",
    summary: "The raises of a budget that apply now, oldest first.",
    role: "viewer",
    input: limitReference,
    output: allOf(records.budgetRaise),
    call: async (administration, { id }, grant) => {
      await requireBudget(administration, grant, { id });
      return { data: await administration.budgets.raises({ id }) };
    },
  }),
  "budgets.raise": operation({
    method: "POST",
    path: "/budgets/{id}/raises",
    summary: "Raises the limit of a budget until a time.",
    role: "operator",
    created: ({ id }) => id,
    input: membersOf(schemas["budgets.raise"]),
    output: records.budgetRaise,
    call: async (administration, input, grant) => {
      const asSeen = await requireBudget(administration, grant, input);
      return administration.budgets.raise({ ...input, ...asSeen, actor: grant.actor });
    },
  }),
  "budgets.cancelRaise": operation({
    method: "DELETE",
    path: "/budgets/{id}/raises/{raiseId}",
    summary: "Ends a raise now.",
    role: "operator",
    input: membersOf(schemas["budgets.cancelRaise"]),
    output: deleted,
    call: async (administration, input, grant) => {
      const asSeen = await requireBudget(administration, grant, input);
      await administration.budgets.cancelRaise({ ...input, ...asSeen, actor: grant.actor });
      return { id: input.raiseId, deleted: true as const };
    },
  }),
};

/** The operations on rate limits. */
export const rateLimits = {
  "rateLimits.list": operation({
    method: "GET",
    path: "/rate-limits",
    summary: "Rate limits by id. Only those whose scope names no organization outside the grant.",
    role: "viewer",
    input: { ...schemas["rateLimits.list"].shape, ...paging },
    output: pageOf(records.rateLimitRecord),
    call: ({ rateLimits }, input, grant) => {
      const { filter, page } = split(input);
      return listSeen(grant, "rate limits", rateLimits.list(filter), page);
    },
  }),
  "rateLimits.create": operation({
    method: "POST",
    path: "/rate-limits",
    summary: "Creates a rate limit.",
    role: "admin",
    created: ({ id }) => id,
    input: membersOf(schemas["rateLimits.create"]),
    isTagged: true,
    output: records.rateLimitRecord,
    call: ({ rateLimits }, input, grant) => {
      requireOwnScope(grant, input.scope);
      return rateLimits.create({ ...input, ...ownId(grant), actor: grant.actor });
    },
  }),
  "rateLimits.get": operation({
    method: "GET",
    path: "/rate-limits/{id}",
    summary: "One rate limit.",
    role: "viewer",
    input: limitReference,
    isTagged: true,
    output: records.rateLimitRecord,
    call: async (administration, { id }, grant) => {
      await requireRateLimit(administration, grant, { id });
      return administration.rateLimits.get({ id });
    },
  }),
  "rateLimits.update": operation({
    method: "POST",
    path: "/rate-limits/{id}",
    summary: "Replaces all but the id of a created rate limit.",
    role: "admin",
    replaces: "/rate-limits/{id}",
    input: membersOf(schemas["rateLimits.update"]),
    isTagged: true,
    output: records.rateLimitRecord,
    call: async (administration, input, grant) => {
      const asSeen = await requireRateLimit(administration, grant, input);
      requireOwnScope(grant, input.scope);
      return administration.rateLimits.update({ ...input, ...asSeen, actor: grant.actor });
    },
  }),
  "rateLimits.remove": operation({
    method: "DELETE",
    path: "/rate-limits/{id}",
    summary: "Removes a created rate limit.",
    role: "admin",
    input: membersOf(schemas["rateLimits.remove"]),
    output: deleted,
    call: async (administration, input, grant) => {
      const asSeen = await requireRateLimit(administration, grant, input);
      await administration.rateLimits.remove({ ...input, ...asSeen, actor: grant.actor });
      return { id: input.id, deleted: true as const };
    },
  }),
  "rateLimits.status": operation({
    method: "GET",
    path: "/rate-limits/{id}/status",
    summary: "The counters of a rate limit.",
    role: "viewer",
    input: { ...schemas["rateLimits.status"].shape, ...paging },
    output: pageOf(records.rateLimitStatus),
    call: async (administration, input, grant) => {
      await requireRateLimit(administration, grant, input);
      const { filter, page } = split(input);
      return administration.rateLimits.status(filter, page);
    },
  }),
};
