import { createGateway, systemClock } from "@tollgate/core";
import { oneGateway } from "@tollgate/next";
import { catalogPrices } from "@tollgate/prices";
import { openaiCompatible } from "@tollgate/provider-openai";
import { sqliteStore } from "@tollgate/store-sqlite";
import { authenticate } from "./sign-in.js";

/** Which edit of this file was loaded. */
export const edit = 0;

/** Of the whole process, however often this file is loaded. */
export const counts = globalThis.tollgateCounts ?? { loads: 0, gateways: 0, timers: 0 };
globalThis.tollgateCounts = counts;
counts.loads++;

const clock = {
  ...systemClock,
  after(milliseconds, run, options) {
    counts.timers++;
    let open = true;
    const end = () => {
      if (open) counts.timers--;
      open = false;
    };
    const fire = () => {
      end();
      run();
    };
    const cancel = systemClock.after(milliseconds, fire, options);
    return () => {
      end();
      cancel();
    };
  },
};

// Neither is set while Next builds, which loads this file but calls nobody.
const { TOLLGATE_DATABASE: filename = "tollgate.db", UPSTREAM: baseURL = "http://127.0.0.1:1/v1" } =
  process.env;

const open = () => {
  counts.gateways++;
  return createGateway({
    store: sqliteStore({ filename }),
    providers: { openai: openaiCompatible({ baseURL, apiKey: "sk-app" }) },
    prices: catalogPrices(),
    authenticate,
    clock,
  });
};

export const gateway = oneGateway(open);
