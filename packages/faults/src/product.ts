import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  createGateway,
  type Gateway,
  type GatewayEvent,
  type GatewayOptions,
} from "@tollgate/core";
import type { Provider } from "@tollgate/core/provider";
import type { Step, Store } from "@tollgate/core/store";
import { type RunningServer, type ServeOptions, serve } from "@tollgate/node";
import { anthropic } from "@tollgate/provider-anthropic";
import { type OpenaiCompatibleOptions, openaiCompatible } from "@tollgate/provider-openai";
import { sqliteStore } from "@tollgate/store-sqlite";
import {
  checkDump,
  checkQuiet,
  dumpStore,
  type PushedClock,
  pushedClock,
  type RawClient,
  rawClient,
  type ScriptedUpstream,
  scriptedUpstream,
} from "@tollgate/testing";
import { chatRoute, type Route } from "./endpoints.ts";
import { type ReadAnswer, readAnswer } from "./read-answer.ts";
import { answerTo } from "./upstream-wires.ts";

type Script = Parameters<typeof scriptedUpstream>[0];

/** The whole product without a client: a server, a gateway, a provider, a database file, and a raw upstream. */
export interface Product {
  readonly upstream: ScriptedUpstream;
  readonly gateway: Gateway;
  readonly server: RunningServer;
  /** The store beneath any wrapper. */
  readonly store: Store;
  readonly clock: PushedClock;
  readonly filename: string;
  readonly secret: string;
  /** The events that observers received. */
  readonly events: readonly GatewayEvent[];
  /** Answers every later request correctly. */
  heal(): void;
  /** Opens a new connection. */
  connect(): Promise<RawClient>;
  /** Sends a request to the product's endpoint on a new connection, for a test to read or leave. */
  post(fields?: object, headers?: readonly string[]): Promise<RawClient>;
  /** Sends the same request and reads the answer to its end. */
  ask(fields?: object, headers?: readonly string[]): Promise<ReadAnswer>;
  /** Resolves when this many Steps have been settled in total. */
  settled(steps: number): Promise<void>;
  /** All Steps, the oldest first. */
  steps(): Promise<readonly Step[]>;
  /** Lists problems in the store. Nothing may be running. */
  problems(): Promise<readonly string[]>;
  close(): Promise<void>;
}

/** Options of a product. */
export interface ProductOptions {
  /** The endpoint that clients use, and the kind of its upstream. Default: chat completions, at both ends. */
  readonly route?: Route;
  readonly gateway?: Partial<GatewayOptions>;
  readonly provider?: Partial<OpenaiCompatibleOptions>;
  readonly server?: ServeOptions;
  /** The provider's base URL. Default: that of the upstream. */
  readonly baseURL?: string;
  /** The store on the product's file. */
  readonly store?: (filename: string) => Store;
  /** Wraps the store for the gateway. */
  readonly wrap?: (store: Store) => Store;
}

export const organization = "acme";
/** The budget of every product: 1,000 dollars. */
export const budget = "whole";

export async function openProduct(script: Script, options: ProductOptions = {}): Promise<Product> {
  let isHealed = false;
  const upstream = await scriptedUpstream((exchange, number) =>
    isHealed ? exchange.send(answerTo(exchange)) : script(exchange, number),
  );
  const folder = mkdtempSync(join(tmpdir(), "tollgate-faults-"));
  const served = await serveGateway(options, upstream, join(folder, "tollgate.db"));
  const { gateway, server } = served;
  const close = async (): Promise<void> => {
    await server.close();
    await gateway.close();
    await upstream.close();
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    const secret = await createSecret(gateway);
    return {
      upstream,
      ...served,
      ...createClient(served, secret, options.route),
      ...createReader(served),
      secret,
      heal() {
        isHealed = true;
      },
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

type Served = Pick<
  Product,
  "gateway" | "server" | "store" | "clock" | "filename" | "events" | "settled"
>;

async function serveGateway(
  options: ProductOptions,
  upstream: ScriptedUpstream,
  filename: string,
): Promise<Served> {
  const clock = pushedClock();
  const store = options.store?.(filename) ?? sqliteStore({ filename });
  const { events, note, settled } = createJournal();
  const common = {
    baseURL: options.baseURL ?? `${upstream.url}/v1`,
    apiKey: "sk-of-the-platform",
    models: { "vendor/model": { input: "1", output: "2", maxOutputTokens: 1_000 } },
    clock,
  };
  const up = openaiCompatible({ ...common, ...options.provider });
  const gateway = createGateway<Record<string, Provider>>({
    budgets: [{ id: budget, limit: { usd: 1_000 }, period: "total" }],
    retries: { max: 0 },
    ...options.gateway,
    clock,
    store: options.wrap?.(store) ?? store,
    observers: [note],
    providers: { ...options.gateway?.providers, up, claude: anthropic(common) },
  });
  const server = await serve(gateway, { port: 0, ...options.server });
  return { gateway, server, store, clock, filename, events, settled };
}

function createClient(
  { server }: Served,
  secret: string,
  route: Route = chatRoute,
): Pick<Product, "connect" | "post" | "ask"> {
  const connect = (): Promise<RawClient> => rawClient(server.url);
  const post: Product["post"] = async (fields = {}, headers = []) => {
    const client = await connect();
    const { path } = route.endpoint;
    const all = ["connection: close", ...headers];
    client.post(bodyOf(route, fields), { secret, path, headers: all });
    return client;
  };
  const ask: Product["ask"] = async (fields, headers) =>
    readAnswer(await (await post(fields, headers)).ended());
  return { connect, post, ask };
}

function createReader({ store, gateway, clock }: Served): Pick<Product, "steps" | "problems"> {
  return {
    async steps() {
      const paging = { cursor: null, limit: 1_000 };
      const page = await store.steps.list({ organizationId: organization }, paging);
      return page.data.toReversed();
    },
    async problems() {
      const query = { organizations: [organization], at: clock.now(), activity: gateway.activity };
      const dump = await dumpStore(store, query);
      return [...checkDump(dump), ...checkQuiet(dump)];
    },
  };
}

/** The body of a chat completion request. */
export const chat = (fields: object = {}): object => bodyOf(chatRoute, fields);

/** The body of a request. */
export const bodyOf = (
  { endpoint, wire }: Route,
  fields: object = {},
  content = "Say hello",
): object => ({ model: wire.model, ...endpoint.body(content), ...fields });

async function createSecret(gateway: Gateway): Promise<string> {
  const created = await gateway.keys.create({
    organizationId: organization,
    userId: "jane",
    label: "test key",
  });
  return created.secret;
}

/** The events that observers received. */
interface Journal {
  readonly events: readonly GatewayEvent[];
  note(event: GatewayEvent): void;
  /** Resolves when this many Steps have been settled. */
  settled(steps: number): Promise<void>;
}

/** Records the events of observers, and waits for settlements. */
function createJournal(): Journal {
  const events: GatewayEvent[] = [];
  let waiting: { readonly steps: number; readonly resolve: () => void }[] = [];
  const count = (): number => events.filter(({ type }) => type === "step.settled").length;
  return {
    events,
    note(event: GatewayEvent): void {
      events.push(event);
      const due = waiting.filter(({ steps }) => steps <= count());
      waiting = waiting.filter(({ steps }) => steps > count());
      for (const { resolve } of due) resolve();
    },
    settled: (steps: number): Promise<void> =>
      count() >= steps
        ? Promise.resolve()
        : new Promise((resolve) => waiting.push({ steps, resolve })),
  };
}
