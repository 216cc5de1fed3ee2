import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createGateway } from "@tollgate/core";
import type { Step } from "@tollgate/core/store";
import { openaiCompatible } from "@tollgate/provider-openai";
import {
  checkDump,
  checkQuiet,
  dumpStore,
  type GatewayProcess,
  type RawClient,
  rawClient,
  type ScriptedUpstream,
  type StoreDump,
  scriptedUpstream,
  spawnGateway,
} from "@tollgate/testing";
import { chatRoute, conversations, type Route, routes } from "./endpoints.ts";
import type { ProcessSettings } from "./gateway-process.ts";
import { bodyOf, organization } from "./product.ts";
import { type DatabaseLocation, openDatabase } from "./stores/database-location.ts";

type Script = Parameters<typeof scriptedUpstream>[0];

/** Gateway processes that share one database and one upstream. */
export interface Processes {
  readonly upstream: ScriptedUpstream;
  /** Their database. */
  readonly place: DatabaseLocation;
  start(settings?: Omit<ProcessSettings, "place" | "upstream">): Promise<GatewayProcess>;
  /** A key that works in every process. */
  secret(): Promise<string>;
  /** Sends a request to a process. By default, requests use all endpoints over both kinds of upstream in turn. */
  post(
    to: GatewayProcess,
    fields?: object,
    headers?: readonly string[],
    route?: Route,
  ): Promise<RawClient>;
  /** The content of the database, read by a separate process. */
  dump(): Promise<StoreDump>;
  steps(): Promise<readonly Step[]>;
  /** How many Steps are open; at most 1,000. */
  openSteps(): Promise<number>;
  /** Every problem in the database; `quiet` also requires that nothing runs. */
  problems(quiet?: boolean): Promise<readonly string[]>;
  close(): Promise<void>;
}

const script = new URL("./gateway-process.ts", import.meta.url);

/** Without a location, the database is a SQLite file. */
export async function openProcesses(
  answer: Script,
  sharedPlace?: DatabaseLocation,
): Promise<Processes> {
  const upstream = await scriptedUpstream(answer);
  const folder = mkdtempSync(join(tmpdir(), "tollgate-processes-"));
  const place = sharedPlace ?? { filename: join(folder, "tollgate.db") };
  const started: GatewayProcess[] = [];
  let secret: Promise<string> | null = null;
  let requests = 0;

  /** The route after that of the request before. Embeddings are never streamed. */
  const nextRoute = (fields: object): Route => {
    const usable = "stream" in fields ? conversations : routes;
    return usable[requests++ % usable.length] ?? chatRoute;
  };
  const secretOf = (): Promise<string> => {
    secret ??= createSecret(place);
    return secret;
  };
  return {
    upstream,
    place,
    dump: () => readPlace(place),
    secret: secretOf,
    async start(settings = {}) {
      const child = await spawnGateway(script, { ...settings, place, upstream: upstream.url });
      started.push(child);
      return child;
    },
    async post(to, fields = {}, headers = [], route = nextRoute(fields)) {
      const client = await rawClient(to.url);
      const all = ["connection: close", ...headers];
      const { path } = route.endpoint;
      client.post(bodyOf(route, fields), { secret: await secretOf(), path, headers: all });
      return client;
    },
    steps: async () => (await readPlace(place)).steps.toReversed(),
    openSteps: () => countOpen(place),
    async problems(quiet = true) {
      const read = await readPlace(place);
      return [...checkDump(read), ...(quiet ? checkQuiet(read) : [])];
    },
    async close() {
      await Promise.all(started.map((child) => child.kill()));
      await upstream.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** A gateway on the database that sends no requests and runs no recovery. */
function openReader(place: DatabaseLocation) {
  const store = openDatabase(place);
  const providers = { up: openaiCompatible({ baseURL: "http://127.0.0.1:1/v1", apiKey: null }) };
  return { store, gateway: createGateway({ store, providers, maintenance: false }) };
}

async function readPlace(place: DatabaseLocation): Promise<StoreDump> {
  const { store, gateway } = openReader(place);
  await gateway.ready();
  const { activity } = gateway;
  const dump = await dumpStore(store, { organizations: [organization], at: Date.now(), activity });
  await gateway.close();
  return dump;
}

async function createSecret(place: DatabaseLocation): Promise<string> {
  const { gateway } = openReader(place);
  const who = { organizationId: organization, userId: "jane", label: "test key" };
  const { secret } = await gateway.keys.create(who);
  await gateway.close();
  return secret;
}

async function countOpen(place: DatabaseLocation): Promise<number> {
  const store = openDatabase(place);
  const query = { organizationId: organization, outcome: ["open" as const] };
  const { data } = await store.steps.list(query, { cursor: null, limit: 1_000 });
  await store.close();
  return data.length;
}
