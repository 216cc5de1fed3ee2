import { setTimeout as pause } from "node:timers/promises";
import { expect, inject, it, onTestFinished } from "vitest";
import {
  hold,
  insertKey,
  stepIntent,
  stepSettlement,
} from "../../store-engine/test/step-intents.ts";
import { postgresStore } from "../src/index.ts";
import { freshSchema, withClient } from "./databases.ts";

it("opens and settles every Step of 64 clients although the server stalls for 2 seconds (F37)", async () => {
  const schema = freshSchema();
  const url = new URL(inject("postgresUrl"));
  url.searchParams.set("application_name", schema);
  const store = postgresStore({ url: url.href }, { schema });
  onTestFinished(() => store.close());
  await store.migrate();
  await insertKey(store);
  let isOver = false;
  let steps = 0;
  const clients = Array.from({ length: 64 }, async (_, client) => {
    for (let at = 0; !isOver; at++) {
      const id = `step ${client} ${at}`;
      expect(await store.openStep(stepIntent(id, [hold(1_000_000_000)]))).toMatchObject({
        opened: true,
      });
      await store.settleStep(stepSettlement(id));
      steps++;
    }
  });
  await pause(500);
  const { rows } = await withClient((client) =>
    client.query<{ pid: number }>("SELECT pid FROM pg_stat_activity WHERE application_name = $1", [
      schema,
    ]),
  );
  const before = steps;
  for (const { pid } of rows) process.kill(pid, "SIGSTOP");
  await pause(2_000);
  for (const { pid } of rows) process.kill(pid, "SIGCONT");
  await pause(1_500);
  isOver = true;
  await Promise.all(clients);
  expect(steps).toBeGreaterThan(before + 64);
}, 20_000);
