/** A separate process for the tests: `node store-process.ts TASK FILE [NAME]`. */
import { once } from "node:events";
import {
  hold,
  insertKey,
  stepIntent,
  stepSettlement,
} from "../../store-engine/test/step-intents.ts";
import { sqliteStore } from "../src/index.ts";

const [task, filename = "", name = ""] = process.argv.slice(2);
const store = sqliteStore({ filename });

/** Reports that it is ready, and waits for the common start signal. */
async function barrier(): Promise<void> {
  process.stdout.write("ready\n");
  await once(process.stdin, "data");
}

/** Opens and settles Steps until it is killed. Prints a line for each acknowledgement. */
async function work(): Promise<void> {
  await store.migrate();
  await insertKey(store);
  const worker = async (number: number): Promise<never> => {
    for (let count = 0; ; count++) {
      const stepId = `${number}-${count}`;
      await store.openStep(stepIntent(stepId, [hold(Number.MAX_SAFE_INTEGER)]));
      process.stdout.write(`opened ${stepId}\n`);
      await store.settleStep(stepSettlement(stepId));
      process.stdout.write(`settled ${stepId}\n`);
    }
  };
  await Promise.all(Array.from({ length: 8 }, (_, number) => worker(number)));
}

/** Requests 32 holds at once, and prints the number of opened Steps. */
async function holdMany(): Promise<void> {
  await store.budgets.version();
  await barrier();
  const openings = Array.from({ length: 32 }, (_, at) =>
    store.openStep(stepIntent(`${name}-${at}`, [hold(370)])),
  );
  const opened = (await Promise.all(openings)).filter((opening) => opening.opened);
  process.stdout.write(`${opened.length}\n`);
}

if (task === "work") await work();
else if (task === "hold") await holdMany();
else {
  await barrier();
  await store.migrate();
}
await store.close();
