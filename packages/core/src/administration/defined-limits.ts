import type { BudgetSnapshot } from "../budgets/budget-cache.ts";
import type { CheckBefore } from "../contracts/repositories.ts";
import type { BudgetCounter } from "../domain/budget.ts";
import type { EvidenceLeaf, LeafKind } from "../domain/evidence-leaf.ts";
import type { RateLimitScope } from "../domain/rate-limit.ts";
import type { ErrorCode } from "../errors/codes.ts";
import { GatewayError, invalidArgument } from "../errors/gateway-error.ts";
import { changeLeaf } from "../evidence/leaves.ts";
import type { Json } from "../kernel/stable-json.ts";
import type { GatewayContext } from "../pipeline/context.ts";
import { reportChange } from "./changes.ts";
import { etagOf, requireMatch } from "./etag.ts";
import { type List, listOf, type Paging, pagesById } from "./list.ts";
import type { OrganizationScope } from "./tenant.ts";

/** The members that budgets and rate limits share. */
interface Limit {
  readonly id: string;
  readonly scope: Pick<RateLimitScope, "gateway" | "organization">;
}

/** A budget or a rate limit, and where it was defined. */
type Defined<Row> = Row & { readonly origin: "declared" | "created" };

/** Who makes a change, and which tag it expects the record to have. */
type ChangeOptions = Readonly<Record<"actor" | "ifMatch", string | undefined>>;

/** The differences between budgets and rate limits. `Found` is a `Row` as the snapshot has it. */
interface LimitKind<Row extends Limit, Found extends Row> {
  readonly name: string;
  /** Its name in evidence. */
  readonly noun: "budget" | "rate_limit";
  readonly unknown: ErrorCode;
  readonly taken: ErrorCode;
  readonly repository: {
    list(): Promise<readonly Row[]>;
    insert(row: Row, leaf: EvidenceLeaf): Promise<boolean>;
    update(row: Row, leaf: EvidenceLeaf, check: CheckBefore<Row>): Promise<boolean>;
    remove(id: string, leaf: EvidenceLeaf, check: CheckBefore<Row>): Promise<boolean>;
  };
  readonly allIn: (snapshot: BudgetSnapshot) => readonly Found[];
  readonly toRecord: (found: Defined<Found>) => Defined<Row>;
  readonly factsOf: (row: Row) => Json;
  /** Rejects a new row that can't continue a counter of an earlier row with its id. */
  readonly checkCounter?: (row: Row, counter: BudgetCounter) => void;
  /** Rejects a row that can't replace the one before. */
  readonly checkReplacing?: (next: Row, before: Row) => void;
}

/** Creates, finds, changes and removes budgets or rate limits. Declared ones can only be found. */
export function createDefinedLimits<Row extends Limit, Found extends Row>(
  context: GatewayContext,
  ready: () => Promise<void>,
  kind: LimitKind<Row, Found>,
) {
  const { budgets, store } = context;
  const { name, noun, repository, toRecord } = kind;

  async function all(): Promise<readonly Defined<Found>[]> {
    await ready();
    const created = new Set((await repository.list()).map(({ id }) => id));
    return kind.allIn(await budgets.reload()).map((row) => ({
      ...row,
      origin: created.has(row.id) ? "created" : "declared",
    }));
  }

  async function find(id: string): Promise<Defined<Found>> {
    return (await all()).find((one) => one.id === id) ?? notFound(id);
  }

  function notFound(id: string): never {
    throw new GatewayError(kind.unknown, `Unknown ${name.toLowerCase()}: ${id}.`);
  }

  async function requireCreated(id: string): Promise<Defined<Found>> {
    const found = await find(id);
    if (found.origin === "created") return found;
    throw invalidArgument("id", `${name} ${id} is declared in the configuration: change it there.`);
  }

  /** Returns an equal record with the same id, so that a repeated creation gets the same result. Null without one. */
  async function existing(record: Defined<Row>): Promise<Defined<Row> | null> {
    const found = (await all()).find(({ id }) => id === record.id);
    if (found === undefined) return null;
    const same = toRecord(found);
    return etagOf(same) === etagOf(record) ? same : taken(record.id);
  }

  function taken(id: string): never {
    const message = `\`id\` is already taken: ${id}. Choose another one, or update what exists.`;
    throw new GatewayError(kind.taken, message, { param: "id" });
  }

  /** The leaf of a change. `facts` are added to those of the row. */
  function leafOf(
    change: LeafKind,
    row: Row,
    actor: string | undefined,
    facts: Readonly<Record<string, Json>> = {},
  ): EvidenceLeaf {
    const place = { kind: change, organizationId: organizationOf(row.scope), actor };
    return changeLeaf(context, place, { [noun]: kind.factsOf(row), ...facts });
  }

  /** Call it after a change is written: reports the change, and applies it to the next request. */
  async function changed(leaf: EvidenceLeaf): Promise<void> {
    reportChange(context, leaf);
    await budgets.reload();
  }

  return {
    find,
    leafOf,
    changed,
    list: (filter: Partial<OrganizationScope> = {}, paging?: Paging): List<Defined<Row>> =>
      listOf(pagesById(`${name.toLowerCase()}s`, all, filter), toRecord, paging),
    async create(
      row: Row,
      {
        actor,
        unused,
      }: { readonly actor: string | undefined; readonly unused: boolean | undefined },
    ): Promise<Defined<Row>> {
      requireKnownGateways(context, row);
      const record: Defined<Row> = { ...row, origin: "created" };
      const known = await existing(record);
      if (known !== null) return known;
      const ofId = { budgetId: row.id };
      const counted = await store.budgets.counters(ofId, { cursor: null, limit: 1 });
      for (const counter of counted.data) {
        kind.checkCounter?.(row, counter);
        if (unused)
          throw invalidArgument("id", `\`id\` was used before: ${row.id}. Choose another one.`);
      }
      // The store doesn't have the declared ids.
      const { budgets: own, rateLimits } = await budgets.reload();
      const isTaken = [...own, ...rateLimits].some(({ id }) => id === row.id);
      const leaf = leafOf(`${noun}.created`, row, actor);
      if (isTaken || !(await repository.insert(row, leaf)))
        return (await existing(record)) ?? taken(row.id);
      await changed(leaf);
      return record;
    },
    async update(row: Row, { actor, ifMatch }: ChangeOptions): Promise<Defined<Row>> {
      requireKnownGateways(context, row);
      const before = await requireCreated(row.id);
      kind.checkReplacing?.(row, before);
      const leaf = leafOf(`${noun}.updated`, row, actor);
      if (!(await repository.update(row, leaf, replacing(row, ifMatch)))) notFound(row.id);
      await changed(leaf);
      return { ...row, origin: "created" };
    },
    async remove(id: string, { actor, ifMatch }: ChangeOptions): Promise<void> {
      const leaf = leafOf(`${noun}.removed`, await requireCreated(id), actor);
      if (!(await repository.remove(id, leaf, matching(ifMatch)))) notFound(id);
      await changed(leaf);
    },
  };
}

/** Compares the tag that a change expects with that of the created budget or rate limit. */
export function matching(ifMatch: string | undefined) {
  return (before: object): void => requireMatch({ ifMatch }, { ...before, origin: "created" });
}

/**
 * As `matching`, but also rejects other organizations. Everyone with access to a budget or rate limit sees its counters,
 * which show how much the users of its organizations have used.
 */
function replacing(next: Limit, ifMatch: string | undefined) {
  const check = matching(ifMatch);
  return (before: Limit): void => {
    check(before);
    if (organizationsOf(next) === organizationsOf(before)) return;
    throw invalidArgument(
      "scope.organization",
      "`scope.organization` can't change: create a budget or rate limit with another id.",
    );
  };
}

function organizationsOf({ scope }: Limit): string {
  return JSON.stringify([...new Set([scope.organization ?? []].flat())].sort());
}

/** The organization whose log has the leaf: the only one that a scope counts; empty for several or all. */
export function organizationOf({ organization }: Pick<RateLimitScope, "organization">): string {
  const [only = "", ...others] = new Set([organization ?? []].flat());
  return others.length === 0 ? only : "";
}

function requireKnownGateways({ providers }: GatewayContext, { scope }: Limit): void {
  const unknown = [scope.gateway ?? []].flat().find((gateway) => !providers.has(gateway));
  if (unknown !== undefined) throw invalidArgument("scope.gateway", `Unknown gateway: ${unknown}.`);
}
