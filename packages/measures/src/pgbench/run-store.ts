import { type PostgresPool, postgresStore } from "@tollgate/store-postgres";
import { stepIntent, stepSettlement } from "../step-intents.ts";
import { type MeasuredStep, measuredOwner } from "./measured-step.ts";

/** How often per second a store opened and settled a Step, with this many in flight at once. */
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
      if (!opened) throw new Error(`Step ${id} was refused`);
      await store.settleStep(stepSettlement(id, at));
    }
  };
  await Promise.all(Array.from({ length: run.inFlight }, work));
  const rate = (done * 1_000) / (performance.now() - started);
  await store.close();
  return rate;
}
