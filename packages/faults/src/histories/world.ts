import { type Clock, createGateway, type Gateway } from "@tollgate/core";
import { definePolicy, forbid, permit } from "@tollgate/core/policy";
import type { Store } from "@tollgate/core/store";
import { countingIds, type ScriptedProvider, scriptedProvider } from "@tollgate/testing";
import { type ObservedStore, observeStore } from "../stores/observed-store.ts";
import { wrapStore } from "../stores/wrap-store.ts";
import { createDriver, type Drive } from "./driver.ts";
import type { SettledEvent } from "./settled-events.ts";
import { type SteppedClock, steppedClock } from "./stepped-clock.ts";
import type { Totals } from "./totals.ts";

/** A gateway that can die, with a lasting store and a scripted provider. */
export interface World {
  readonly clock: SteppedClock;
  readonly provider: ScriptedProvider;
  /** The events of ended Steps, from all lives. */
  readonly settled: readonly SettledEvent[];
  /** By how much each correction changed the totals. */
  readonly corrections: Totals[];
  /** The current gateway. */
  gateway(): Gateway;
  /** Ends the process, so its calls no longer reach the store, and starts another one. */
  restart(): void;
  readonly drive: Drive;
  untilIdle(): Promise<void>;
}

export function createWorld(store: Store): World {
  const quiet = observeStore(store);
  const clock = steppedClock(quiet.untilIdle);
  const provider = scriptedProvider({
    clock,
    models: { "tollgate/scripted": { input: "1", output: "2", maxOutputTokens: 100 } },
  });
  const settled: SettledEvent[] = [];
  let life = 0;
  const start = (): GatewayLife => startLife({ quiet, clock, provider, settled, life: ++life });
  let current = start();

  return {
    clock,
    provider,
    settled,
    corrections: [],
    gateway: () => current.gateway,
    restart() {
      current.die();
      current = start();
    },
    untilIdle: quiet.untilIdle,
    drive: createDriver(clock, quiet.untilIdle),
  };
}

interface GatewayLife {
  readonly gateway: Gateway;
  die(): void;
}

function startLife({
  quiet,
  clock,
  provider,
  settled,
  life,
}: {
  readonly quiet: ObservedStore;
  readonly clock: Clock;
  readonly provider: ScriptedProvider;
  readonly settled: SettledEvent[];
  readonly life: number;
}): GatewayLife {
  let isAlive = true;
  const never = new Promise<never>(() => {});
  const lifeClock: Clock = {
    ...clock,
    after: (milliseconds, run, options) =>
      clock.after(milliseconds, () => (isAlive ? run() : undefined), options),
  };
  return {
    gateway: createGateway({
      store: wrapStore(quiet.store, (_, call) => (isAlive ? call() : never)),
      clock: lifeClock,
      ids: countingIds(life),
      observers: [(event) => void (event.type === "step.settled" && settled.push(event))],
      providers: {
        test: provider.at("test"),
        other: provider.at("other"),
        own: { ...provider.at("own"), connection: "customer" },
      },
      secrets: { current: `life-${life}`, keys: keysUpTo(life) },
      budgets: [
        { id: "everyone", limit: { usd: 1 }, period: "day" },
        { id: "each-key", scope: { each: "key" }, limit: { tokens: 3_000 }, period: "hour" },
      ],
      policy: definePolicy({
        rules: [
          permit("all", {}, { fallbacks: ["other/tollgate/scripted"] }),
          forbid("not-this-one", { model: "*/*/denied" }),
        ],
      }),
      retention: { responses: "2h", activity: "3h", transcripts: "4h" },
    }),
    die() {
      isAlive = false;
    },
  };
}

/** The key-encryption keys of all lives until this one: each begins one of its own. */
function keysUpTo(life: number): Readonly<Record<string, string>> {
  const lives = Array.from({ length: life }, (_, before) => before + 1);
  return Object.fromEntries(
    lives.map((one) => [`life-${one}`, Buffer.alloc(32, one).toString("base64")]),
  );
}
