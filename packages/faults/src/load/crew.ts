import { type GatewayProcess, spawnGateway } from "@tollgate/testing";
import type { Place } from "../stores/place.ts";
import type { LoadPlan, LoadTold } from "./load.ts";
import type { LoadSettings } from "./load-process.ts";

/** Processes that share a database and load it, and are killed and replaced. */
export interface Crew {
  begin(plan: LoadPlan): Promise<void>;
  /** Kills one and starts another in its place, which goes on where the slowest of the others is. */
  kill(number: number): Promise<void>;
  isDone(): Promise<boolean>;
  told(): Promise<readonly LoadTold[]>;
  /** Ends the load, lets the leases of the dead lapse, recovers, and ends the processes. */
  close(): Promise<void>;
}

const script = new URL("./load-process.ts", import.meta.url);
const lapse = 40_000;

export async function openCrew(
  place: Place,
  {
    processes,
    usd,
    further = 0,
    failing = 0,
  }: { readonly processes: number } & Pick<LoadSettings, "usd"> & Partial<LoadSettings>,
): Promise<Crew> {
  const settings: LoadSettings = { place, usd, further, failing };
  const start = (): Promise<GatewayProcess> => spawnGateway(script, settings);
  const members = await Promise.all(Array.from({ length: processes }, start));
  let plan: LoadPlan = { secrets: [], workers: 0, refusals: 0 };
  /** The place in the plan at which each began. */
  const begun = members.map(() => 0);
  const told = (): Promise<readonly LoadTold[]> => Promise.all(members.map(toldBy));

  return {
    told,
    async begin(whole) {
      plan = whole;
      await Promise.all(members.map((member) => member.command("begin", plan)));
    },
    async kill(number) {
      const others = (await told()).map(({ key }, at) => key + (begun[at] ?? 0));
      const next = start();
      await members[number]?.kill();
      members[number] = await next;
      begun[number] = Math.min(...others);
      await members[number]?.command("begin", {
        ...plan,
        secrets: plan.secrets.slice(begun[number]),
      });
    },
    isDone: async () => (await told()).every(({ isDone }) => isDone),
    async close() {
      await Promise.all(members.map((member) => member.command("end")));
      for (const member of members) await member.command("push", lapse);
      for (const member of members) await member.command("recover");
      await Promise.all(members.map((member) => member.stop()));
    },
  };
}

async function toldBy(member: GatewayProcess): Promise<LoadTold> {
  const told = await member.command("told");
  if (isTold(told)) return told;
  throw new Error("the process does not tell what came of its load");
}

function isTold(value: unknown): value is LoadTold {
  return (
    typeof value === "object" &&
    value !== null &&
    ["key", "refused", "failed"].every((name) => Number.isSafeInteger(Reflect.get(value, name))) &&
    Array.isArray(Reflect.get(value, "acknowledged"))
  );
}
