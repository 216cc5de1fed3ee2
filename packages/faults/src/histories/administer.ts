import { everyOrganization, type Gateway } from "@tollgate/core";
import type { AdministrativeCommand } from "./administrative-command.ts";
import type { HistoryState } from "./asking.ts";
import { at } from "./at.ts";
import { organizations } from "./observe.ts";
import type { World } from "./world.ts";

type CommandOf<Type extends AdministrativeCommand["type"]> = Extract<
  AdministrativeCommand,
  { type: Type }
>;

const minute = 60_000;
const actor = "ops";

/** Does what an administrator does; null if there is nothing to act on. */
export async function administer(
  world: World,
  state: HistoryState,
  command: AdministrativeCommand,
): Promise<unknown> {
  const gateway = world.gateway();
  switch (command.type) {
    case "createKey":
    case "rotateKey":
    case "revokeKey":
    case "revokeUser":
      return changeKeys(gateway, state, command);
    case "setBudget":
      return setBudget(gateway, command);
    case "removeBudget":
      return gateway.budgets.remove({ id: `budget-${command.budget}` });
    case "raiseBudget":
    case "cancelRaise":
      return changeRaises(world, command);
    case "correct":
    case "reprice":
      return changeFigures(gateway, command);
    case "setConnection":
    case "removeConnection":
    case "reseal":
      return changeConnections(world, command);
  }
}

async function changeKeys(
  { keys }: Gateway,
  state: HistoryState,
  command: CommandOf<"createKey" | "rotateKey" | "revokeKey" | "revokeUser">,
): Promise<unknown> {
  if (command.type === "createKey") {
    const { user, organization } = command;
    const organizationId = organizationOf(organization);
    const label = `key ${state.keys.length}`;
    const created = await keys.create({ organizationId, userId: `user-${user}`, label });
    state.keys.push({ id: created.key.id, organizationId, secret: created.secret });
    return created;
  }
  const key = at(state.keys, command.key);
  if (key === undefined) return null;
  if (command.type === "revokeKey") return keys.revoke(key);
  if (command.type === "revokeUser")
    return keys.revoke({ organizationId: key.organizationId, userId: "user-1", actor });
  const rotated = await keys.rotate({ ...key, overlap: "10s" });
  key.secret = rotated.secret;
  return rotated;
}

async function setBudget({ budgets }: Gateway, command: CommandOf<"setBudget">): Promise<unknown> {
  const budget = {
    id: `budget-${command.budget}`,
    scope: command.each ? ({ each: "user" } as const) : { organization: ["acme"] },
    limit: command.unit === "tokens" ? { tokens: command.limit } : { requests: command.limit },
    period: command.each ? ("hour" as const) : ("day" as const),
    mode: command.hard ? ("hard" as const) : ("soft" as const),
  };
  const { data } = await budgets.list();
  return data.some(({ id }) => id === budget.id) ? budgets.update(budget) : budgets.create(budget);
}

async function changeRaises(
  world: World,
  command: CommandOf<"raiseBudget" | "cancelRaise">,
): Promise<unknown> {
  const { budgets } = world.gateway();
  const budget = at((await budgets.list()).data, command.budget);
  if (budget === undefined) return null;
  const { id, unit } = budget;
  if (command.type === "cancelRaise") {
    const raiseId = at(await budgets.raises({ id }), command.raise)?.id ?? "none";
    return budgets.cancelRaise({ id, raiseId, actor });
  }
  const { amount, minutes } = command;
  const until = new Date(world.clock.now() + minutes * minute).toISOString();
  const by = { usd: { usd: amount }, tokens: { tokens: amount }, requests: { requests: amount } };
  return budgets.raise({ id, by: by[unit], until });
}

async function changeFigures(
  { steps }: Gateway,
  command: CommandOf<"correct" | "reprice">,
): Promise<unknown> {
  const everyone = { organizationId: everyOrganization } as const;
  if (command.type === "reprice") {
    const prices = { "test/tollgate/scripted": { input: "3", output: "1" } };
    const page = await steps.reprice(everyone, { prices, apply: true, actor }, { limit: 3 });
    // The content of a cursor depends on the store. Its presence doesn't.
    return { ...page, nextCursor: page.nextCursor !== null };
  }
  const step = at((await steps.list(everyone, { limit: 4 })).data, command.step);
  if (step === undefined) return null;
  const { attempt, tokens, costNanoUsd } = command;
  return steps.correct({
    organizationId: step.organizationId,
    id: step.id,
    reason: "an invoice",
    ...(attempt === null ? {} : { attempt }),
    ...(tokens === null ? {} : { usage: { promptTokens: tokens, completionTokens: 3 } }),
    ...(costNanoUsd === null ? {} : { costNanoUsd }),
  });
}

async function changeConnections(
  world: World,
  command: CommandOf<"setConnection" | "removeConnection" | "reseal">,
): Promise<unknown> {
  if (command.type === "reseal") {
    world.restart();
    return world.gateway().connections.reseal({ actor });
  }
  const { connections } = world.gateway();
  const place = { organizationId: organizationOf(command.organization), gateway: "own" };
  if (command.type === "removeConnection") return connections.remove(place);
  return connections.set({ ...place, apiKey: `credential-${command.credential}`, actor });
}

function organizationOf(number: number): string {
  return organizations[number] ?? organizations[0];
}
