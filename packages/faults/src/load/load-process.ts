/** A gateway process that sends requests to itself without a pause, so another process can kill it at any point. */
import { type BudgetConfiguration, createGateway, type Gateway } from "@tollgate/core";
import { budgetPeriods } from "@tollgate/core/store";
import { serve } from "@tollgate/node";
import { pushedClock, scriptedProvider, serveAsProcess } from "@tollgate/testing";
import {
  type DatabaseLocation,
  isDatabaseLocation,
  openDatabase,
} from "../stores/database-location.ts";
import { failingStore } from "../stores/wrap-store.ts";
import { createLoad } from "./load.ts";

/** Settings of a load process. */
export interface LoadSettings {
  readonly place: DatabaseLocation;
  /** The hard limit of each key, in US dollars. */
  readonly usd: number;
  /** The number of further hard budgets that every request is held on, all with room; at most 15. */
  readonly extraBudgetCount: number;
  /** How many of a thousand openings and settlements fail, before or after they are written. */
  readonly failing: number;
}

/**
 * Budgets of every unit, period and `each`, with enough room for the whole load: some count for all keys, most for each
 * key.
 */
const extraBudgets: readonly BudgetConfiguration[] = [
  { id: "all", limit: { usd: 1_000_000 }, period: "total" },
  { id: "gateway", scope: { gateway: "test" }, limit: { requests: 1_000_000_000 }, period: "day" },
  { id: "organization", scope: { each: "organization" }, limit: { usd: 9_999 }, period: "month" },
  { id: "user", scope: { each: "user" }, limit: { tokens: 1_000_000_000_000 }, period: "week" },
  { id: "model", scope: { model: "test/*/*" }, limit: { usd: "9999.99" }, period: "total" },
  ...budgetPeriods.flatMap((period): readonly BudgetConfiguration[] => [
    { id: `requests-${period}`, scope: { each: "key" }, limit: { requests: 1_000_000 }, period },
    { id: `tokens-${period}`, scope: { each: "key" }, limit: { tokens: 1_000_000_000 }, period },
  ]),
];

serveAsProcess(async (settings) => {
  if (!isSettings(settings)) throw new Error("The settings must contain a database and a limit.");
  const clock = pushedClock();
  const provider = scriptedProvider({
    models: { "tollgate/scripted": { input: "1", output: "2" } },
  });
  provider.reply({ text: "OK", delay: "10ms" }, { times: Number.POSITIVE_INFINITY });
  const gateway = createGateway({
    store: failingStore(openDatabase(settings.place), settings.failing),
    clock,
    providers: { test: provider },
    budgets: [
      { id: "each-key", scope: { each: "key" }, limit: { usd: settings.usd }, period: "total" },
      ...extraBudgets.slice(0, settings.extraBudgetCount),
    ],
  });
  await gateway.ready();
  const server = await serve(gateway, {
    port: 0,
    limits: { closing: 2_000 },
    close: gateway.close,
  });
  const load = createLoad(gateway);
  return {
    url: server.url,
    commands: {
      begin: (plan) => load.begin(plan),
      end: () => load.end(),
      report: () => load.report(),
      push: (milliseconds) => clock.push(Number(milliseconds)),
      recover: () => recoverAll(gateway),
    },
    async close() {
      await server.close();
      await gateway.close();
    },
  };
});

const maxRecoveries = 10;

/** Recovers the Steps of dead processes. The store may fail then, too, and recovery may be repeated. */
async function recoverAll({ recover }: Pick<Gateway, "recover">): Promise<number> {
  for (let attempt = 1; ; attempt++)
    try {
      return await recover();
    } catch (error) {
      if (attempt === maxRecoveries) throw error;
    }
}

function isSettings(value: unknown): value is LoadSettings {
  return (
    typeof value === "object" &&
    value !== null &&
    "place" in value &&
    isDatabaseLocation(value.place) &&
    ["usd", "extraBudgetCount", "failing"].every(
      (name) => typeof Reflect.get(value, name) === "number",
    )
  );
}
