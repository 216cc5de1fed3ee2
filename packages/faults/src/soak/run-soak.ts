import { setTimeout as pause } from "node:timers/promises";
import { createGateway } from "@tollgate/core";
import {
  checkDump,
  checkQuiet,
  dumpStore,
  type GatewayProcess,
  type StoreDump,
  scriptedProvider,
  spawnGateway,
} from "@tollgate/testing";
import { seededRandom } from "../random.ts";
import { type DatabaseLocation, openDatabase } from "../stores/database-location.ts";
import { growthProblems, type Sample } from "./plot.ts";
import { type SoakUpstream, startSoakUpstream } from "./soak-upstream.ts";
import { canaryOf, organizations, type Tenant } from "./tenants.ts";
import { createTraffic, type Traffic } from "./traffic.ts";

/** How long a soak lasts, and what fails meanwhile. */
export interface SoakPlan {
  readonly place: DatabaseLocation;
  readonly seconds: number;
  readonly seed: number;
  /** How many conversations run at once. */
  readonly concurrency: number;
  /** How many of a thousand openings and settlements of the store fail. */
  readonly failing: number;
  /** How often the second process is killed, in seconds. */
  readonly killEvery: number;
}

/** The figures and all problems of a soak. */
export interface SoakResult {
  readonly counts: Readonly<Record<string, number>>;
  readonly steps: number;
  readonly acknowledged: number;
  readonly kills: number;
  /** Of the process that lives through the whole soak, and of the killed one. */
  readonly samples: readonly (readonly Sample[])[];
  readonly problems: readonly string[];
}

const script = new URL("../gateway-process.ts", import.meta.url);
const leaseLapseMs = 40_000;
const samples = 120;
const keysPerTenant = 2;

/** Sends mixed traffic to two processes while the upstream, the store and one of the processes fail. */
export async function runSoak(plan: SoakPlan): Promise<SoakResult> {
  const random = seededRandom(plan.seed);
  const upstream = await startSoakUpstream(random);
  const start = (): Promise<GatewayProcess> =>
    spawnGateway(script, { place: plan.place, upstream: upstream.url, failing: plan.failing });
  const tenants = await createTenants(plan.place);
  const lasting = await start();
  const killed = { process: await start(), kills: 0 };
  const traffic = createTraffic(tenants, () => [lasting.url, killed.process.url], random);
  try {
    const sampled = await load(plan, { lasting, killed, start, traffic });
    await settle(lasting, killed.process, start);
    const dump = await readDump(plan.place);
    return {
      counts: {
        ...traffic.counts,
        upstream: upstream.counts.requests,
        faults: upstream.counts.faults,
      },
      steps: dump.steps.length,
      acknowledged: [...traffic.acknowledged.values()].reduce((sum, { size }) => sum + size, 0),
      kills: killed.kills,
      samples: sampled,
      problems: [...problemsOf(dump, traffic, upstream), ...growthProblems(sampled[0] ?? [])],
    };
  } finally {
    await Promise.all([lasting.kill(), killed.process.kill()]);
    await upstream.close();
  }
}

interface Running {
  readonly lasting: GatewayProcess;
  readonly killed: { process: GatewayProcess; kills: number };
  readonly traffic: Traffic;
  start(): Promise<GatewayProcess>;
}

async function load(plan: SoakPlan, running: Running): Promise<readonly (readonly Sample[])[]> {
  const { lasting, killed, traffic, start } = running;
  const began = performance.now();
  const passed = (): number => (performance.now() - began) / 1_000;
  const isOver = (): boolean => passed() >= plan.seconds;
  const sampled: [Sample[], Sample[]] = [[], []];
  const converse = async (): Promise<void> => {
    while (!isOver()) await traffic.play();
  };
  const kill = async (): Promise<void> => {
    for (;;) {
      await pause(Math.min(plan.killEvery, Math.max(0, plan.seconds - passed())) * 1_000);
      if (isOver()) return;
      const next = await start();
      const before = killed.process;
      killed.process = next;
      await before.kill();
      killed.kills++;
    }
  };
  const sample = async (): Promise<void> => {
    while (!isOver()) {
      const at = passed();
      for (const [number, process] of [lasting, killed.process].entries()) {
        const measured = await process.command("measure").catch(() => null);
        if (isSample(measured)) sampled[number]?.push({ ...measured, at });
      }
      await pause((plan.seconds * 1_000) / samples);
    }
  };
  await Promise.all([...Array.from({ length: plan.concurrency }, converse), kill(), sample()]);
  return sampled;
}

function isSample(value: unknown): value is Omit<Sample, "at"> {
  return (
    typeof value === "object" && value !== null && "rssBytes" in value && "descriptors" in value
  );
}

/** Ends all processes. A new one then recovers what they left. */
async function settle(
  lasting: GatewayProcess,
  killed: GatewayProcess,
  start: () => Promise<GatewayProcess>,
): Promise<void> {
  await Promise.all([lasting.stop(), killed.stop()]);
  const last = await start();
  await last.command("push", leaseLapseMs);
  for (let round = 0; round < 20 && Number(await last.command("recover")) > 0; round++);
  await last.stop();
}

/** A gateway on the database that sends no requests and runs no recovery. */
function openReader(place: DatabaseLocation) {
  const store = openDatabase(place);
  const gateway = createGateway({
    store,
    providers: { up: scriptedProvider() },
    maintenance: false,
  });
  return { store, gateway };
}

async function createTenants(place: DatabaseLocation): Promise<readonly [Tenant, ...Tenant[]]> {
  const { gateway } = openReader(place);
  const tenantOf = async (organizationId: string): Promise<Tenant> => {
    const secrets: string[] = [];
    for (let key = 0; key < keysPerTenant; key++) {
      const who = { organizationId, userId: `user-${key}`, label: `key ${key}` };
      secrets.push((await gateway.keys.create(who)).secret);
    }
    return { organizationId, secrets, canary: canaryOf(organizationId) };
  };
  const [first, ...others] = organizations;
  const tenants: [Tenant, ...Tenant[]] = [await tenantOf(first)];
  for (const organizationId of others) tenants.push(await tenantOf(organizationId));
  await gateway.close();
  return tenants;
}

async function readDump(place: DatabaseLocation): Promise<StoreDump> {
  const { store, gateway } = openReader(place);
  await gateway.ready();
  const query = { organizations, at: Date.now(), activity: gateway.activity };
  const dump = await dumpStore(store, query);
  await gateway.close();
  return dump;
}

function problemsOf(dump: StoreDump, traffic: Traffic, upstream: SoakUpstream): readonly string[] {
  const outcomes = new Map(dump.steps.map(({ decisionId, outcome }) => [decisionId, outcome]));
  const lost = [...traffic.acknowledged.values()].flatMap((ids) =>
    [...ids]
      .filter((id) => outcomes.get(id) !== "completed")
      .map((id) => `the Step of decision ${id}: acknowledged, but ${outcomes.get(id)}`),
  );
  return [
    ...traffic.problems,
    ...upstream.leaks,
    ...lost,
    ...checkDump(dump),
    ...checkQuiet(dump),
    ...foreignTranscripts(dump),
  ];
}

/** Transcripts of a tenant that contain another one's canary. */
function foreignTranscripts({ sessions }: StoreDump): readonly string[] {
  return sessions.flatMap(({ session, parts }) => {
    const text = parts.map(({ content }) => Buffer.from(content ?? []).toString()).join("");
    return organizations
      .filter((organizationId) => organizationId !== session.organizationId)
      .filter((organizationId) => text.includes(canaryOf(organizationId)))
      .map((organizationId) => `Session ${session.id}: it contains data of ${organizationId}`);
  });
}
