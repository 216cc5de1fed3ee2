import type { ChangeQuery } from "../contracts/repositories.ts";
import { type ChangeKind, isChangeKind } from "../domain/change-kind.ts";
import type { EvidenceLeaf } from "../domain/evidence-leaf.ts";
import { listed, type OneOrMany } from "../domain/pattern.ts";
import { filters, read } from "../input/read.ts";
import type { GatewayContext } from "../pipeline/context.ts";
import { type List, listOf, type Paging } from "./list.ts";
import { changeFilter } from "./schemas.ts";
import { fromIso, type OrganizationScope, tenantOf, toIso } from "./tenant.ts";

/** One administrative change: what was done, by whom, to what. */
export interface ChangeRecord {
  /** The id of the evidence record that was written in the same transaction. */
  readonly id: string;
  readonly at: string;
  /** Null for what is of no single organization: the policy, and budgets of several organizations. */
  readonly organizationId: string | null;
  readonly kind: ChangeKind;
  /** Null where none was named. */
  readonly actor: string | null;
  /** The id of the key, connection, budget or Step; the version of the policy. */
  readonly subject: string | null;
  /** What the evidence record says of it: ids, figures and digests, never a secret or free text. */
  readonly facts: Readonly<Record<string, unknown>>;
}

/** Which changes; every given member must match. */
export interface ChangeFilter extends OrganizationScope {
  readonly kind?: OneOrMany<ChangeKind>;
  /** ISO 8601: made at or after, and before. */
  readonly from?: string;
  readonly to?: string;
}

/** Who changed keys, connections, budgets, recorded figures and the policy. */
export interface Changes {
  /** Newest first. @throws GatewayError `invalid_argument` */
  list(filter: ChangeFilter, paging?: Paging): List<ChangeRecord>;
}

export function createChanges({ store }: GatewayContext, ready: () => Promise<void>): Changes {
  return {
    list: (filter, paging) =>
      listOf(
        async (storePaging) => {
          const query = queryOf(filter);
          await ready();
          return store.evidence.changes(query, storePaging);
        },
        toChangeRecord,
        paging,
      ),
  };
}

function queryOf(filter: ChangeFilter): ChangeQuery {
  const { kind, from, to, ...scope } = read(changeFilter, filter, filters);
  return {
    organizationId: tenantOf(scope),
    ...(kind === undefined ? {} : { kind: listed(kind) }),
    ...(from === undefined ? {} : { from: fromIso(from) }),
    ...(to === undefined ? {} : { to: fromIso(to) }),
  };
}

function toChangeRecord({ id, at, organizationId, kind, meta }: EvidenceLeaf): ChangeRecord | null {
  if (!isChangeKind(kind)) return null;
  const members: Readonly<Record<string, unknown>> = JSON.parse(meta);
  const { actor, ...rest } = members;
  const facts = Object.fromEntries(Object.entries(rest).filter(([name]) => !heads.has(name)));
  return {
    id,
    at: toIso(at),
    organizationId: organizationId === "" ? null : organizationId,
    kind,
    actor: typeof actor === "string" ? actor : null,
    subject: subjectOf(kind, facts),
    facts,
  };
}

/** What every leaf says, and the record says by itself. */
const heads: ReadonlySet<string> = new Set(["at", "id", "kind", "organization", "version"]);

/** `key.revoked` is about the fact `key`: an id, or something with an id. A correction is about its Step. */
function subjectOf(kind: ChangeKind, facts: Readonly<Record<string, unknown>>): string | null {
  const [noun = ""] = kind === "correction" ? ["step"] : kind.split(".");
  const subject = facts[noun];
  if (typeof subject === "string") return subject;
  const id: unknown =
    typeof subject === "object" && subject !== null ? Reflect.get(subject, "id") : null;
  return typeof id === "string" ? id : null;
}
