import type { ChangeQuery } from "../contracts/repositories.ts";
import { type ChangeKind, isChangeKind } from "../domain/change-kind.ts";
import type { EvidenceLeaf } from "../domain/evidence-leaf.ts";
import { listed, type OneOrMany } from "../domain/pattern.ts";
import { filters, read } from "../input/read.ts";
import type { GatewayContext } from "../pipeline/context.ts";
import { type ExportColumn, type ExportOptions, exportFile } from "./export.ts";
import { type List, listOf, type Paging } from "./list.ts";
import { changeFilter } from "./schemas.ts";
import { type OrganizationScope, rangeOf, tenantOf, toIso } from "./tenant.ts";

/** One administrative change, with its actor and its subject. */
export interface ChangeRecord {
  /** The id of the evidence record, which was written in the same transaction. */
  readonly id: string;
  readonly at: string;
  /** Null if it belongs to no single organization: the policy, and budgets of several organizations. */
  readonly organizationId: string | null;
  readonly kind: ChangeKind;
  /** Null if none was given. */
  readonly actor: string | null;
  /** The id of the key, connection, budget, rate limit, Step or Session, or the version of the policy. */
  readonly subject: string | null;
  /** The facts in the evidence record: ids, numbers and digests, never a secret or free text. */
  readonly facts: Readonly<Record<string, unknown>>;
}

/** Selects changes. Every given member must match. */
export interface ChangeFilter extends OrganizationScope {
  readonly kind?: OneOrMany<ChangeKind>;
  /** ISO 8601: made at or after `from`, and before `to`, which must not be earlier. */
  readonly from?: string;
  readonly to?: string;
}

/** Changes to keys, connections, budgets, rate limits, recorded figures and the policy, and readings of transcripts. */
export interface Changes {
  /** Newest first. @throws GatewayError `invalid_argument` */
  list(filter: ChangeFilter, paging?: Paging): List<ChangeRecord>;
  /** Exports changes, newest first, as a file of any size. @throws GatewayError `invalid_argument` */
  export(filter: ChangeFilter, options: ExportOptions): ReadableStream<Uint8Array>;
}

export function createChanges(context: GatewayContext, ready: () => Promise<void>): Changes {
  const list: Changes["list"] = (filter, paging) =>
    listOf(
      async (storePaging) => {
        const query = queryOf(filter);
        await ready();
        return context.store.evidence.changes(query, storePaging);
      },
      toChangeRecord,
      paging,
    );
  return {
    list,
    export: (filter, options) => {
      const { organizationId } = queryOf(filter);
      return exportFile(context, ready, options, {
        columns: changeColumns,
        // Changes of no organization belong among the others: all come in one order.
        tenant: organizationId ?? "",
        read: (_organizationId, paging) => list(filter, paging),
      });
    },
  };
}

/** The columns of a CSV file. Their order is part of the format, so add new ones at the end. */
const changeColumns: readonly ExportColumn<ChangeRecord>[] = [
  ["id", ({ id }) => id],
  ["at", ({ at }) => at],
  ["organizationId", ({ organizationId }) => organizationId],
  ["kind", ({ kind }) => kind],
  ["actor", ({ actor }) => actor],
  ["subject", ({ subject }) => subject],
  ["facts", ({ facts }) => JSON.stringify(facts)],
];

function queryOf(filter: ChangeFilter): ChangeQuery {
  const { kind, ...scope } = read(changeFilter, filter, filters);
  return {
    organizationId: tenantOf(scope),
    ...(kind === undefined ? {} : { kind: listed(kind) }),
    ...rangeOf(scope),
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

/** Reports a durable change to observers, by its leaf. */
export function reportChange(
  { isObserved, notify }: Pick<GatewayContext, "isObserved" | "notify">,
  leaf: EvidenceLeaf | null | undefined,
): void {
  const change = leaf && isObserved() ? toChangeRecord(leaf) : null;
  if (!leaf || change === null) return;
  const { kind, organizationId, subject, actor } = change;
  notify({ type: "administered", at: leaf.at, kind, organizationId, subject, actor });
}

/** Members of every leaf, which the record has under its own names. */
const heads: ReadonlySet<string> = new Set(["at", "id", "kind", "organization", "version"]);

/**
 * The subject of `key.revoked` is the fact `key`: an id, or an object with an id. That of a correction is its Step, and that
 * of a transcript the Step or the Session that was read.
 */
function subjectOf(kind: ChangeKind, facts: Readonly<Record<string, unknown>>): string | null {
  const [noun = ""] = kind.split(".");
  const isOfStep = kind === "correction" || kind === "transcript.read";
  const subject = isOfStep ? (facts["step"] ?? facts["session"]) : facts[noun];
  if (typeof subject === "string") return subject;
  if (typeof subject !== "object" || subject === null || !("id" in subject)) return null;
  return typeof subject.id === "string" ? subject.id : null;
}
