/** A gateway process that asks itself without a pause, so that another can kill it in the middle of anything. */
import { createGateway } from "@tollgate/core";
import { serve } from "@tollgate/node";
import { pushedClock, scriptedProvider, serveAsProcess } from "@tollgate/testing";
import { isPlace, openPlace, type Place } from "../stores/place.ts";
import { createLoad } from "./load.ts";

/** What such a process is told. */
export interface LoadSettings {
  readonly place: Place;
  /** The hard limit of each key, in US dollars. */
  readonly usd: number;
}

serveAsProcess(async (settings) => {
  if (!isSettings(settings)) throw new Error("the settings name no place and no limit");
  const clock = pushedClock();
  const provider = scriptedProvider({
    models: { "tollgate/scripted": { input: "1", output: "2" } },
  });
  provider.reply({ text: "OK", delay: "10ms" }, { times: Number.POSITIVE_INFINITY });
  const gateway = createGateway({
    store: openPlace(settings.place),
    clock,
    providers: { test: provider },
    budgets: [
      { id: "each-key", scope: { each: "key" }, limit: { usd: settings.usd }, period: "total" },
    ],
  });
  await gateway.ready();
  const server = await serve(gateway, { port: 0, limits: { drain: 1_000 } });
  const load = createLoad(gateway);
  return {
    url: server.url,
    commands: {
      begin: (what) => load.begin(what),
      end: () => load.end(),
      told: () => load.told(),
      push: (milliseconds) => clock.push(Number(milliseconds)),
      recover: () => gateway.recover(),
    },
    async close() {
      await server.close();
      await gateway.close();
    },
  };
});

function isSettings(value: unknown): value is LoadSettings {
  return (
    typeof value === "object" &&
    value !== null &&
    "place" in value &&
    isPlace(value.place) &&
    "usd" in value &&
    typeof value.usd === "number"
  );
}
