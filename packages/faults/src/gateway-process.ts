import { setImmediate as nextTurn } from "node:timers/promises";
import { type BudgetConfiguration, type Clock, createGateway, ed25519Signer } from "@tollgate/core";
import type { Store } from "@tollgate/core/store";
import { serve } from "@tollgate/node";
import { anthropic } from "@tollgate/provider-anthropic";
import { openaiCompatible } from "@tollgate/provider-openai";
import {
  faultyStore,
  type PushedClock,
  pushedClock,
  type ReachBarrier,
  type StoreFault,
  serveAsProcess,
} from "@tollgate/testing";
import { authenticate, createCostWatch, keyCommands, measure } from "./process-commands.ts";
import {
  type DatabaseLocation,
  isDatabaseLocation,
  openDatabase,
} from "./stores/database-location.ts";
import { failingStore } from "./stores/wrap-store.ts";
import { verifyLogs } from "./verified-logs.ts";

/** Settings of a gateway process. */
export interface ProcessSettings {
  readonly place: DatabaseLocation;
  readonly upstream: string;
  /** The hard limit of the one budget, in requests. Default none. */
  readonly requests?: number;
  /** The hard limit of a budget of each key, in requests. Default none. */
  readonly requestsOfEachKey?: number;
  /**
   * How far the machine's clock is ahead, in milliseconds. The gateway then uses that clock, which can't be pushed.
   */
  readonly machineClockAhead?: number;
  /** How many of a thousand openings and settlements fail, before or after they are written. Default none. */
  readonly failing?: number;
  /** A call of the store where the process waits at the barrier `store`. */
  readonly waitsAt?: Pick<StoreFault, "verb" | "nth" | "when">;
  /** Seals the evidence with this private key, in PEM. Default: no leaf is sealed. */
  readonly signingKey?: string;
}

serveAsProcess(async (settings, reach) => {
  if (!isSettings(settings))
    throw new Error("The settings must contain a database and an upstream.");
  const { machineClockAhead } = settings;
  if (machineClockAhead !== undefined) setMachineClockAhead(machineClockAhead);
  const clock = pushedClock();
  const gateway = createGateway({
    store: withWait(
      failingStore(openDatabase(settings.place), settings.failing ?? 0),
      settings,
      reach,
    ),
    ...(machineClockAhead === undefined ? { clock } : {}),
    budgets: [
      { id: "whole", limit: { usd: 1_000 }, period: "total" },
      ...(settings.requests === undefined
        ? []
        : [{ id: "few", limit: { requests: settings.requests }, period: "total" as const }]),
      ...eachKey(settings),
    ],
    authenticate,
    ...evidenceOf(settings),
    retries: { max: 0 },
    // A busy machine makes the process late, but the tests expect an answer to each request.
    limits: { loopDelay: 60_000 },
    providers: providersOf(settings, clock),
  });
  const watch = createCostWatch();
  await gateway.ready();
  const server = await serve(gateway, {
    port: 0,
    limits: { closing: 2_000 },
    close: gateway.close,
  });
  return {
    url: server.url,
    commands: {
      ...keyCommands(gateway),
      recover: () => gateway.recover(),
      rollUp: () => gateway.rollUp(),
      seal: () => gateway.evidence.seal(),
      verify: (anchors) => verifyLogs(gateway, anchors),
      watch: () => watch.start(),
      watched: () => watch.stop(),
      memory: () => process.memoryUsage.rss(),
      measure: () => measure(clock.timers()),
      push: (milliseconds) => clock.push(Number(milliseconds)),
      round: (milliseconds) => runRound(clock, Number(milliseconds)),
    },
    async close() {
      await server.close();
      await gateway.close();
    },
  };
});

function eachKey({ requestsOfEachKey: requests }: ProcessSettings): readonly BudgetConfiguration[] {
  return requests === undefined
    ? []
    : [{ id: "each", scope: { each: "key" }, limit: { requests }, period: "total" }];
}

function evidenceOf({ signingKey: privateKey }: ProcessSettings) {
  if (privateKey === undefined) return {};
  return { evidence: { signer: ed25519Signer({ name: "tollgate.example", privateKey }) } };
}

function setMachineClockAhead(milliseconds: number): void {
  const now = Date.now;
  Date.now = () => now() + milliseconds;
}

/** Advances the clock of an idle gateway, and resolves when the due round has ended and set the timer of the next. */
async function runRound(clock: PushedClock, milliseconds: number): Promise<void> {
  const timers = clock.timers();
  clock.push(milliseconds);
  while (clock.timers() < timers) await nextTurn();
}

/** The upstream by each of its APIs. */
function providersOf({ upstream }: ProcessSettings, clock: Clock) {
  const options = {
    clock,
    baseURL: `${upstream}/v1`,
    apiKey: null,
    models: { "vendor/model": { input: "1", output: "2", maxOutputTokens: 1_000 } },
  };
  return { up: openaiCompatible(options), claude: anthropic(options) };
}

function withWait(store: Store, { waitsAt }: ProcessSettings, reach: ReachBarrier): Store {
  if (waitsAt === undefined) return store;
  const wrapped = faultyStore(store, { on: { ...waitsAt, action: "wait" } });
  void wrapped.fault.reached().then(async () => {
    await reach("store");
    wrapped.fault.release();
  });
  return wrapped.store;
}

function isSettings(value: unknown): value is ProcessSettings {
  return (
    typeof value === "object" &&
    value !== null &&
    "place" in value &&
    isDatabaseLocation(value.place) &&
    "upstream" in value &&
    typeof value.upstream === "string"
  );
}
