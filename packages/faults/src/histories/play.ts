import { isDeepStrictEqual } from "node:util";
import { everyOrganization, type Gateway, GatewayError } from "@tollgate/core";
import type { Store } from "@tollgate/core/store";
import { checkUsageHours, dumpStore } from "@tollgate/testing";
import type { EmptyStores } from "../stores/empty-stores.ts";
import { administer } from "./administer.ts";
import {
  askChat,
  askEmbeddings,
  askMessage,
  askRespond,
  beginSlowly,
  type HistoryState,
  retry,
  useStoredResponse,
} from "./asking.ts";
import { at } from "./at.ts";
import type { Command } from "./command.ts";
import { observe, organizations } from "./observe.ts";
import { requireMatchingEvents } from "./settled-events.ts";
import { difference as changed, recordedTotals, requireSameTotals } from "./totals.ts";
import { scriptUpstream } from "./upstream.ts";
import { createWorld, type World } from "./world.ts";

/** The results of each command, and all visible records at the end. */
export type History = readonly unknown[];

const hour = 3_600_000;

/** Plays commands on an empty store. */
export async function play(store: Store, commands: readonly Command[]): Promise<History> {
  const world = createWorld(store);
  const state: HistoryState = {
    keys: [],
    conversations: [],
    responses: [],
    streams: [],
    last: null,
  };
  const history: unknown[] = [];
  const first: Command = { type: "createKey", user: 0, organization: 0 };
  for (const command of [first, ...commands]) {
    history.push({ command, told: await outcomeOf(() => perform(world, state, command, store)) });
    await world.untilIdle();
  }
  await world.clock.advance(30_000);
  for (const { leave } of state.streams) leave();
  await world.untilIdle();
  await requireMatchingEvents(world.gateway(), world.settled);
  history.push(
    state.streams.map((stream) => stream.seen()),
    await observe(world.gateway(), store),
    world.provider.calls.map(({ gateway, credential }) => [gateway, credential]),
    await sumsAtTheEnd(world, store),
  );
  return history;
}

/** Returns the result of a command. An error of the gateway is a result, too. */
async function outcomeOf(run: () => Promise<unknown>): Promise<unknown> {
  try {
    return await run();
  } catch (error) {
    if (error instanceof GatewayError) return { code: error.code, message: error.message };
    throw error;
  }
}

async function perform(
  world: World,
  state: HistoryState,
  command: Command,
  store: Store,
): Promise<unknown> {
  const gateway = world.gateway();
  switch (command.type) {
    case "chat":
      return askChat(world, state, command);
    case "respond":
      return askRespond(world, state, command);
    case "message":
      return askMessage(world, state, command);
    case "embed":
      return askEmbeddings(world, state, command);
    case "chatSlowly":
      return beginSlowly(world, state, command);
    case "retry":
      return retry(world, state);
    case "disconnect":
      return void at(state.streams, command.stream)?.leave();
    case "upstream":
      return scriptUpstream(world.provider, command.behavior);
    case "getResponse":
    case "listItems":
    case "deleteResponse":
      return useStoredResponse(world, state, command);
    case "sweep":
      return withSameSums(gateway, gateway.sweep);
    case "rollUp":
      return withSameSums(gateway, gateway.rollUp);
    case "recover":
      return gateway.recover();
    case "restart":
      return world.restart();
    case "observe":
      return observe(gateway, store);
    case "advance":
      return world.clock.advance(command.seconds * 1_000);
    case "setWall":
      return world.clock.moveWall(command.hours * hour);
    case "correct":
    case "reprice":
      return withCorrections(world, () => administer(world, state, command));
    default:
      return administer(world, state, command);
  }
}

/** Notes by how much corrections change the totals of the Steps. */
async function withCorrections(world: World, run: () => Promise<unknown>): Promise<unknown> {
  const before = await recordedTotals(world.gateway());
  try {
    return await run();
  } finally {
    world.corrections.push(changed(before, await recordedTotals(world.gateway())));
  }
}

/** Folds everything, and requires that the hourly sums add up to the Steps, and to the events of all Steps that ever were. */
async function sumsAtTheEnd(world: World, store: Store): Promise<unknown> {
  const gateway = world.gateway();
  world.clock.moveWall(3 * hour);
  await gateway.recover();
  const folded = await gateway.rollUp();
  const query = { organizations, at: world.clock.now(), activity: gateway.activity };
  const dump = await dumpStore(store, query);
  const problems = checkUsageHours(dump);
  if (problems.length > 0) throw new Error(problems.join("\n"));
  requireSameTotals(dump.usage, world.settled, world.corrections);
  return { folded, usage: dump.usage };
}

const dimensions = ["organization", "key", "model", "outcome", "hour"] as const;

/** Does something that must change no sum. */
async function withSameSums(gateway: Gateway, run: () => Promise<number>): Promise<number> {
  const sums = () => gateway.steps.summarize({ organizationId: everyOrganization }, dimensions);
  const before = await sums();
  const result = await run();
  const after = await sums();
  if (!isDeepStrictEqual(after, before))
    throw new Error(`sums changed:\n${JSON.stringify(before)}\n${JSON.stringify(after)}`);
  return result;
}

/** Plays the same commands on stores of each kind; every store's history must be that of the first. */
export async function playOnEach(
  kinds: readonly EmptyStores[],
  commands: readonly Command[],
): Promise<readonly History[]> {
  const histories: History[] = [];
  for (const kind of kinds) histories.push(await playOn(kind, commands));
  return histories;
}

/** Describes the first difference of two histories, or null. */
export function difference(expected: History, other: History): string | null {
  const at = expected.findIndex((entry, index) => !isDeepStrictEqual(entry, other[index]));
  if (at === -1 && expected.length === other.length) return null;
  return `entry ${at}:\n${JSON.stringify(expected[at])}\n${JSON.stringify(other[at])}`;
}

async function playOn(kind: EmptyStores, commands: readonly Command[]): Promise<History> {
  const { store, drop } = await kind.open();
  try {
    return await play(store, commands);
  } finally {
    await drop();
  }
}
