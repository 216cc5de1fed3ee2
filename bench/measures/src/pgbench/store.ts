import { createHash } from "node:crypto";
import { type Hold, leafHash, type Owner, type Store } from "@tollgate/core/store";
import {
  type PostgresClient,
  type PostgresPool,
  type PostgresQuery,
  postgresStore,
} from "@tollgate/store-postgres";
import { organizationId, stepIntent, stepSettlement } from "../step-intents.ts";

/** The time at which the measured Steps open, and their holds. */
export interface MeasuredStep {
  readonly at: number;
  readonly holds: readonly Hold[];
}

/** The owner of the measured Steps. */
export const measuredOwner: Owner = { organizationId, userId: "user-0", keyId: "key-0" };

/** A hold on one budget for all Steps, which never runs out. */
export const sharedHold: Hold = {
  budgetId: "shared",
  subject: "",
  periodStart: 0,
  unit: "tokens",
  mode: "hard",
  limit: Number.MAX_SAFE_INTEGER,
  amount: 470,
};

/** Inserts the key of the measured Steps. */
export function insertMeasuredKey(store: Store, at: number): Promise<void> {
  const meta = JSON.stringify({ kind: "key.created" });
  const digest = createHash("sha256").update("a secret").digest();
  return store.keys.insert({
    key: {
      ...measuredOwner,
      id: measuredOwner.keyId,
      label: "a key",
      prefix: "tg_abcd",
      defaultDataClass: "D1_INTERNAL",
      minimumDataClass: "D0_PUBLIC",
      models: null,
      aliases: null,
      leadingSystem: null,
      createdAt: at,
      expiresAt: null,
      revokedAt: null,
      lastUsedAt: null,
      version: 0,
    },
    digest,
    salt: digest,
    leaf: { id: "key", organizationId, kind: "key.created", at, meta, hash: leafHash(meta) },
  });
}

/** Opens and settles Steps with this number in flight. Returns Steps per second. */
export async function runStore(
  pool: PostgresPool,
  run: {
    readonly schema: string;
    readonly inFlight: number;
    readonly seconds: number;
    readonly round: number;
    readonly step: MeasuredStep;
  },
): Promise<number> {
  const store = postgresStore({ pool }, { schema: run.schema });
  const { at, holds } = run.step;
  const started = performance.now();
  const end = started + run.seconds * 1_000;
  let done = 0;
  const work = async (): Promise<void> => {
    while (performance.now() < end) {
      const id = `store-${run.round}-${done++}`;
      const { opened } = await store.openStep(stepIntent(id, measuredOwner, at, holds));
      if (!opened) throw new Error(`Step ${id} was not opened.`);
      await store.settleStep(stepSettlement(id, at));
    }
  };
  await Promise.all(Array.from({ length: run.inFlight }, work));
  const rate = (done * 1_000) / (performance.now() - started);
  await store.close();
  return rate;
}

/** A statement that the store sent. */
export interface RecordedStatement {
  readonly text: string;
  readonly values: readonly unknown[];
}

/** Records the statements that a store sends on this pool during an action. */
export async function recordStatements(
  pool: PostgresPool,
  schema: string,
  use: (store: ReturnType<typeof postgresStore>) => Promise<void>,
): Promise<readonly RecordedStatement[]> {
  const recorded: RecordedStatement[] = [];
  const recording: PostgresPool = {
    on: (event, listener) => pool.on(event, listener),
    off: (event, listener) => pool.off(event, listener),
    connect: (taken) =>
      pool.connect((error, client) =>
        taken(
          error,
          client && listening(client, ({ text, values = [] }) => recorded.push({ text, values })),
        ),
      ),
  };
  const store = postgresStore({ pool: recording }, { schema });
  await use(store);
  await store.close();
  return recorded;
}

function listening(client: PostgresClient, hear: (query: PostgresQuery) => void): PostgresClient {
  return {
    query(query, answered) {
      hear(query);
      client.query(query, answered);
    },
    on: (event, listener) => client.on(event, listener),
    off: (event, listener) => client.off(event, listener),
    release: (destroy) => client.release(destroy),
  };
}
