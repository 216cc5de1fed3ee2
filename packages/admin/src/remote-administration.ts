import {
  type Administration,
  type CreateAdminTokenOptions,
  type CreatedAdminToken,
  type CreatedKey,
  type CreateKeyOptions,
  GatewayError,
  type KeyRecord,
  type KeyReference,
  type Keys,
  type RepriceOptions,
  type RevokedKeys,
  type UserKeysReference,
} from "@tollgate/core";
import {
  createsSecret,
  type List,
  listOf,
  type Page,
  type Paging,
} from "@tollgate/core/administration";

type OneOrMany = string | readonly string[];

import { createHttpClient, type HttpClient, type RemoteOptions } from "./http-client.ts";
import type { Operation } from "./operation.ts";
import { operations } from "./operations.ts";

/**
 * The administration of a remote gateway, over its admin API: the same nouns and methods as those of a gateway, with the
 * same records and errors. The actor of every change is the owner of the token, so no method takes one.
 * @throws GatewayError `invalid_configuration` for an invalid URL, or without a token
 */
export function remoteAdministration(options: RemoteOptions): Administration {
  const client = createHttpClient(options);
  const { send } = client;
  return {
    ...ofLimits(client),
    ...ofRecords(client),
    keys: {
      create: createsSecret<CreateKeyOptions, CreatedKey>((creation) =>
        send(operations["keys.create"], creation),
      ),
      get: (reference) => send(operations["keys.get"], reference),
      list: (filter, paging) => pages(client, operations["keys.list"], filter, paging),
      update: (change) => send(operations["keys.update"], change),
      rotate: (reference) => send(operations["keys.rotate"], reference),
      revoke: createRevoke(client),
    },
    adminTokens: {
      create: createsSecret<CreateAdminTokenOptions, CreatedAdminToken>((creation) =>
        send(operations["adminTokens.create"], creation),
      ),
      get: (reference) => send(operations["adminTokens.get"], reference),
      list: (paging) => pages(client, operations["adminTokens.list"], {}, paging),
      revoke: (reference) => send(operations["adminTokens.revoke"], reference),
    },
    connections: {
      set: (setting) => send(operations["connections.set"], setting),
      get: (reference) => send(operations["connections.get"], reference),
      list: (filter, paging) => pages(client, operations["connections.list"], filter, paging),
      remove: async (reference) => {
        await send(operations["connections.remove"], reference);
      },
      reseal: (acting = {}) => send(operations["connections.reseal"], acting),
    },
    status: () => send(operations.status, {}),
    models: (paging) => pages(client, operations.models, {}, paging),
    policy: () => send(operations.policy, {}),
    reconcileUsage: (options) => send(operations.reconcileUsage, options),
    recover: async () => (await send(operations.recover, {})).count,
    sweep: async () => (await send(operations.sweep, {})).count,
  };
}

function ofLimits(client: HttpClient): Pick<Administration, "budgets" | "rateLimits"> {
  const { send } = client;
  return {
    budgets: {
      create: (budget) => send(operations["budgets.create"], budget),
      get: (reference) => send(operations["budgets.get"], reference),
      list: (filter, paging) => pages(client, operations["budgets.list"], filter, paging),
      update: (budget) => send(operations["budgets.update"], budget),
      remove: async (reference) => {
        await send(operations["budgets.remove"], reference);
      },
      status: (query, paging) => pages(client, operations["budgets.status"], query, paging),
      raise: (raise) => send(operations["budgets.raise"], raise),
      raises: async (reference) => (await send(operations["budgets.raises"], reference)).data,
      cancelRaise: async (reference) => {
        await send(operations["budgets.cancelRaise"], reference);
      },
      reconcile: () => send(operations["budgets.reconcile"], {}),
    },
    rateLimits: {
      create: (rateLimit) => send(operations["rateLimits.create"], rateLimit),
      get: (reference) => send(operations["rateLimits.get"], reference),
      list: (filter, paging) => pages(client, operations["rateLimits.list"], filter, paging),
      update: (rateLimit) => send(operations["rateLimits.update"], rateLimit),
      remove: async (reference) => {
        await send(operations["rateLimits.remove"], reference);
      },
      status: (query, paging) => pages(client, operations["rateLimits.status"], query, paging),
    },
  };
}

type RecordNouns = "activity" | "steps" | "sessions" | "decisions" | "changes";

function ofRecords(client: HttpClient): Pick<Administration, RecordNouns> {
  const { send, download } = client;
  return {
    activity: {
      list: (filter, paging) => pages(client, operations["activity.list"], filter, paging),
      summarize: async (filter, by) =>
        (await send(operations["activity.summarize"], { ...filter, by: listed(by) })).data,
      export: (filter, options) =>
        download(operations["activity.export"], { ...filter, ...options }),
    },
    steps: {
      list: (filter, paging) => pages(client, operations["steps.list"], filter, paging),
      get: (reference) => send(operations["steps.get"], reference),
      content: (reference) => send(operations["steps.content"], reference),
      correct: (correction) => send(operations["steps.correct"], correction),
      summarize: async (filter, by) =>
        (await send(operations["steps.summarize"], { ...filter, by: listed(by) })).data,
      series: async (filter, { bucket, by = [] }) =>
        (await send(operations["steps.series"], { ...filter, bucket, by: listed(by) })).data,
      export: (filter, options) => download(operations["steps.export"], { ...filter, ...options }),
      reprice: (filter, repricing, paging) => {
        const parameters = { ...filter, ...sendable(repricing) };
        return pages(client, operations["steps.reprice"], parameters, paging);
      },
    },
    sessions: {
      list: (filter, paging) => pages(client, operations["sessions.list"], filter, paging),
      get: (reference) => send(operations["sessions.get"], reference),
      lineage: (reference, paging) =>
        pages(client, operations["sessions.lineage"], reference, paging),
      transcript: async (reference) =>
        (await send(operations["sessions.transcript"], reference)).data,
    },
    decisions: {
      list: (filter, paging) => pages(client, operations["decisions.list"], filter, paging),
      get: (reference) => send(operations["decisions.get"], reference),
      export: (filter, options) =>
        download(operations["decisions.export"], { ...filter, ...options }),
    },
    changes: {
      list: (filter, paging) => pages(client, operations["changes.list"], filter, paging),
      export: (filter, options) =>
        download(operations["changes.export"], { ...filter, ...options }),
    },
  };
}

function pages<Row>(
  { send }: HttpClient,
  operation: Operation<Page<Row>>,
  filter: object = {},
  paging?: Paging,
): List<Row> {
  return listOf(
    (page) => send(operation, { ...filter, ...page }),
    (row) => row,
    paging,
  );
}

function createRevoke({ send }: HttpClient): Keys["revoke"] {
  function revoke(reference: KeyReference): Promise<KeyRecord>;
  function revoke(reference: UserKeysReference): Promise<RevokedKeys>;
  async function revoke(
    reference: KeyReference | UserKeysReference,
  ): Promise<KeyRecord | RevokedKeys> {
    return "userId" in reference
      ? send(operations["keys.revokeOfUser"], reference)
      : send(operations["keys.revoke"], reference);
  }
  return revoke;
}

/** A price book is code, which can't be sent. */
function sendable(repricing: RepriceOptions): RepriceOptions {
  if (!("priceOf" in repricing.prices) || typeof repricing.prices.priceOf !== "function")
    return repricing;
  throw new GatewayError(
    "invalid_argument",
    "`prices` must be a table of prices: a price book can't be sent over HTTP.",
    { param: "prices" },
  );
}

function listed(by: OneOrMany): readonly string[] {
  return [by].flat();
}
