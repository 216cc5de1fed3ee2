import { type GatewayProcess, spawnGateway } from "@tollgate/testing";
import type { DatabaseLocation } from "../stores/database-location.ts";
import type { LoadPlan, LoadReport } from "./load.ts";
import type { LoadSettings } from "./load-process.ts";

/** Processes that share a database and load it, and are killed and replaced. */
export interface Workers {
  begin(plan: LoadPlan): Promise<void>;
  /** Kills one and starts another in its place, which continues where the slowest of the others is. */
  kill(number: number): Promise<void>;
  isDone(): Promise<boolean>;
  reports(): Promise<readonly LoadReport[]>;
  /** Ends the load, lets the leases of the dead lapse, recovers, and ends the processes. */
  close(): Promise<void>;
}

const script = new URL("./load-process.ts", import.meta.url);
const leaseLapseMs = 40_000;

export async function startWorkers(
  place: DatabaseLocation,
  {
    processes,
    usd,
    extraBudgetCount = 0,
    failing = 0,
  }: { readonly processes: number } & Pick<LoadSettings, "usd"> & Partial<LoadSettings>,
): Promise<Workers> {
  const settings: LoadSettings = { place, usd, extraBudgetCount, failing };
  const start = (): Promise<GatewayProcess> => spawnGateway(script, settings);
  const children = await Promise.all(Array.from({ length: processes }, start));
  let plan: LoadPlan = { secrets: [], concurrency: 0, refusals: 0 };
  /** The position in the plan at which each one began. */
  const begun = children.map(() => 0);
  const reports = (): Promise<readonly LoadReport[]> => Promise.all(children.map(reportOf));

  return {
    reports,
    async begin(whole) {
      plan = whole;
      await Promise.all(children.map((child) => child.command("begin", plan)));
    },
    async kill(number) {
      const others = (await reports()).map(({ key }, at) => key + (begun[at] ?? 0));
      const next = start();
      await children[number]?.kill();
      children[number] = await next;
      begun[number] = Math.min(...others);
      await children[number]?.command("begin", {
        ...plan,
        secrets: plan.secrets.slice(begun[number]),
      });
    },
    isDone: async () => (await reports()).every(({ isDone }) => isDone),
    async close() {
      await Promise.all(children.map((child) => child.command("end")));
      for (const child of children) await child.command("push", leaseLapseMs);
      for (const child of children) await child.command("recover");
      await Promise.all(children.map((child) => child.stop()));
    },
  };
}

async function reportOf(child: GatewayProcess): Promise<LoadReport> {
  const report = await child.command("report");
  if (isReport(report)) return report;
  throw new Error("The process sent no load report.");
}

function isReport(value: unknown): value is LoadReport {
  return (
    typeof value === "object" &&
    value !== null &&
    ["key", "refused", "failed", "wrong"].every((name) =>
      Number.isSafeInteger(Reflect.get(value, name)),
    ) &&
    Array.isArray(Reflect.get(value, "acknowledged"))
  );
}
