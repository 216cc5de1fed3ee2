import { everyOrganization, type Gateway, type OrganizationScope } from "@tollgate/core";

/** How many records of each kind a gateway has written, in every organization. */
export async function written(gateway: Gateway): Promise<{
  readonly steps: number;
  readonly sessions: number;
  readonly decisions: number;
}> {
  const all: OrganizationScope = { organizationId: everyOrganization };
  const [steps, sessions, decisions] = await Promise.all([
    gateway.steps.list(all),
    gateway.sessions.list(all),
    gateway.decisions.list(all),
  ]);
  return {
    steps: steps.data.length,
    sessions: sessions.data.length,
    decisions: decisions.data.length,
  };
}

/** The amount held on a budget, over all its counters of the current period. */
export async function heldOn(gateway: Gateway, id: string): Promise<number> {
  const { data } = await gateway.budgets.status({ id });
  return data.reduce((sum, { held }) => sum + held, 0);
}
