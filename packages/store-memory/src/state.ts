import {
  type AdminToken,
  type ApiKey,
  type Budget,
  type BudgetCounter,
  type BudgetCounterKey,
  type BudgetRaise,
  type Checkpoint,
  createInFlight,
  decodeCursor,
  type EvidenceLeaf,
  encodeCursor,
  type InFlight,
  isChangeKind,
  type Owner,
  type PolicyDecision,
  type RateLimit,
  type SealedConnection,
  type StoredResponse,
  type StorePage,
  type StorePaging,
  type Tenant,
  type UsageDetail,
  type UsageHour,
} from "@tollgate/core/store";
import type {
  ClaimKey,
  ClaimRecord,
  CorrectionRecord,
  ErrorRecord,
  HoldRecord,
  PartRecord,
  ResponseRecord,
  ResponseView,
  RowName,
  SessionState,
  StepRecord,
  TurnRecord,
} from "@tollgate/store-engine";
import { mapPage, type Place, pageOf, sortedPage } from "./page.ts";

/** Everything a memory store keeps. */
export interface State {
  readonly salts: Map<string, Uint8Array>;
  readonly keys: Table<KeyRow>;
  /** The keys without a secret, by organization, user and label. */
  readonly secretlessKeys: Map<string, KeyRow>;
  /** By the digest of the secret, in hex. */
  readonly secrets: Map<string, SecretRow>;
  /** By organization and gateway. */
  readonly connections: Map<string, SealedConnection>;
  readonly sessions: Table<SessionRow>;
  /** The update up to which each organization's Sessions were checked for erasure. */
  readonly erasedUpTo: Map<string, number>;
  readonly turns: Table<TurnRecord>;
  readonly steps: Table<StepRow>;
  readonly openSteps: InFlight<StepRow>;
  /** Every Step that ever had a hold: the ledger of the counters. */
  readonly stepsWithHolds: Set<StepRow>;
  readonly decisions: Table<DecisionRow>;
  readonly leaves: Leaves;
  /** The log of each organization, by its id. */
  readonly logs: Map<string, Log>;
  /** The leaves of administrative changes, by time. */
  readonly changes: Table<LeafRow>;
  readonly leases: Map<string, Lease>;
  readonly budgets: Map<string, Budget>;
  readonly rateLimits: Map<string, RateLimit>;
  readonly adminTokens: Table<AdminTokenRow>;
  readonly raises: BudgetRaise[];
  readonly counters: Counters;
  readonly responses: Responses;
  /** By time, then by the order written. */
  readonly usage: Readonly<Record<UsageDetail, Table<UsageHour>>>;
  /** The cursor of each organization's last folded Step. */
  readonly usageMarks: Map<string, string>;
  /** By `claimKeyOf`. */
  readonly claims: Map<string, ClaimRecord>;
  budgetsVersion: number;
  /** The version of the latest policy. Null before the first. */
  policyVersion: string | null;
  updates: number;
  stepsOpened: number;
}

export function createState(): State {
  const createUsage = () => createTable<UsageHour>("usage", ({ hour }) => hour);
  const changes = createTable<LeafRow>("changes", ({ at }) => at);
  const logs = new Map<string, Log>();
  return {
    salts: new Map(),
    keys: createTable("keys", ({ key }) => key.createdAt),
    secretlessKeys: new Map(),
    secrets: new Map(),
    connections: new Map(),
    sessions: createTable("sessions"),
    erasedUpTo: new Map(),
    turns: createTable("turns"),
    steps: createTable("steps", ({ record }) => record.step.openedAt),
    openSteps: createInFlight(),
    stepsWithHolds: new Set(),
    decisions: createTable("decisions", ({ decision }) => decision.at),
    leaves: leavesWith(changes, logs),
    logs,
    changes,
    leases: new Map(),
    budgets: new Map(),
    rateLimits: new Map(),
    adminTokens: createTable("admin tokens", ({ token }) => token.createdAt),
    raises: [],
    counters: createCounters(),
    responses: createResponses(),
    usage: { callers: createUsage(), totals: createUsage() },
    usageMarks: new Map(),
    claims: new Map(),
    budgetsVersion: 0,
    policyVersion: null,
    updates: 0,
    stepsOpened: 0,
  };
}

function leavesWith(changes: Table<LeafRow>, logs: Map<string, Log>): Leaves {
  const leaves = createTable<LeafRow>("leaves");
  return {
    page: leaves.page,
    insert({ hash, ...leaf }) {
      const row = { ...leaf, hash: Buffer.from(hash).toString("hex") };
      if (!leaves.insert(row)) return;
      const log = logs.get(leaf.organizationId) ?? { leaves: [], checkpoints: [] };
      logs.set(leaf.organizationId, log);
      log.leaves.push(row);
      if (isChangeKind(leaf.kind)) changes.insert(row);
    },
  };
}

export interface KeyRow extends RowName {
  key: ApiKey;
  readonly secrets: SecretRow[];
  /** Its most recently updated Sessions, by source. */
  readonly recent: Map<string, RecentSessions>;
}

/** A token for the admin API. It belongs to no organization. */
export interface AdminTokenRow extends RowName {
  token: AdminToken;
  /** In hex. */
  readonly digest: string;
}

export interface SecretRow {
  readonly keyRow: KeyRow;
  expiresAt: number | null;
}

export interface SessionRow extends RowName {
  record: SessionState;
  /** Sessions that branched from this one. */
  branches: readonly SessionRow[];
  /** Everything its Steps added, in the order it was written. */
  readonly parts: PartRow[];
  errors: readonly ErrorRow[];
  /** Whether any content was added since it was last erased. */
  holdsContent: boolean;
}

/**
 * A part, with its chain in hex and its content in latin1, one character per byte: strings are cheaper to create and keep
 * than bytes. Salts and commitments are never read, so they are not kept.
 */
interface PartRow extends Pick<PartRecord, "stepId" | "kind" | "position" | "count"> {
  readonly chain: string;
  content: string | null;
}

/** A provider's error message. Null if only its commitment is kept. */
interface ErrorRow extends Pick<ErrorRecord, "attempt"> {
  message: string | null;
}

export interface StepRow extends RowName {
  /** The renewal of its process's lease at the time it opened. */
  readonly renewal: number;
  record: StepRecord;
  /** Every hold it took, including settled ones. */
  holds: readonly HoldRecord[];
  errors: readonly ErrorRow[];
  corrections: readonly CorrectionRecord[];
  outputTokens: number | null;
  /** The latest renewal of its process's lease that included it. */
  lastRenewal: number;
  /** Its place in the order in which Steps opened: slots are reused, so they have no order. */
  readonly opened: number;
  /** Its slot among the open Steps. Null once it is settled. */
  openSlot: number | null;
}

/** A leaf with its hash in hex: strings are cheaper to keep than bytes. */
export type LeafRow = Omit<EvidenceLeaf, "hash"> & { readonly hash: string };

/** An organization's leaves in the order written, which are sealed in this order, and its checkpoints. */
export interface Log {
  readonly leaves: LeafRow[];
  readonly checkpoints: Checkpoint[];
}

/** Every leaf, in the order written. */
interface Leaves extends Pick<Table<LeafRow>, "page"> {
  insert(leaf: EvidenceLeaf): void;
}

export interface DecisionRow extends Owner {
  readonly id: string;
  readonly decision: PolicyDecision;
}

interface Lease {
  readonly renewal: number;
  readonly until: number;
}

/** Rows sorted by time, then by the order written, and found by id. An id is unique only within its organization. */
interface Table<Row extends RowName> {
  /** Returns false and writes nothing if the organization already has the id. */
  insert(row: Row): boolean;
  remove(row: Row): void;
  get(tenant: Tenant, id: string): Row | null;
  /** All rows, oldest first. */
  rows(): Iterable<Row>;
  /** Every matching row, oldest first. */
  all(query: Omit<TableQuery<Row>, "direction">): readonly Row[];
  /** A page of matching rows. */
  page(query: TableQuery<Row>, paging: StorePaging): StorePage<Row>;
  /** The cursor behind a row, in either direction. */
  cursorOf(row: Row): string;
}

interface TableQuery<Row> {
  readonly direction: "oldest-first" | "newest-first";
  readonly tenant: Tenant;
  readonly matches?: (row: Row) => boolean;
}

/** A row and its place in the order. */
interface Entry<Row> {
  readonly time: number;
  readonly written: number;
  readonly row: Row;
}

/** `timeOf` sorts the rows. The order of writing is not enough, because clocks differ and are set back. */
function createTable<Row extends RowName>(
  name: string,
  timeOf: (row: Row) => number = () => 0,
): Table<Row> {
  const entries: Entry<Row>[] = [];
  const byOrganization = new Map<string, Map<string, Entry<Row>>>();
  let writes = 0;

  const get = (tenant: Tenant, id: string): Row | null => {
    if (tenant !== null) return byOrganization.get(tenant)?.get(id)?.row ?? null;
    for (const rows of byOrganization.values()) {
      const entry = rows.get(id);
      if (entry) return entry.row;
    }
    return null;
  };
  const rowsOf = (organizationId: string): Map<string, Entry<Row>> => {
    const known = byOrganization.get(organizationId);
    if (known) return known;
    const rows = new Map<string, Entry<Row>>();
    byOrganization.set(organizationId, rows);
    return rows;
  };
  const cursorOf = ({ time, written }: Entry<Row>): string =>
    encodeCursor(name, { order: time, tie: String(written) });

  return {
    get,

    insert(row) {
      const rows = rowsOf(row.organizationId);
      if (rows.has(row.id)) return false;
      const entry = { time: timeOf(row), written: writes++, row };
      rows.set(row.id, entry);
      const last = entries.at(-1);
      if (!last || last.time <= entry.time) entries.push(entry);
      else entries.splice(placeOf(entries, entry), 0, entry);
      return true;
    },
    remove(row) {
      const rows = rowsOf(row.organizationId);
      const entry = rows.get(row.id);
      if (entry?.row !== row) return;
      rows.delete(row.id);
      entries.splice(placeOf(entries, entry), 1);
    },
    cursorOf({ organizationId, id }) {
      const entry = rowsOf(organizationId).get(id);
      return entry ? cursorOf(entry) : "";
    },
    *rows() {
      for (const { row } of entries) yield row;
    },
    all: ({ tenant, matches }) =>
      entries.flatMap(({ row }) => (isIn(tenant, row) && (matches?.(row) ?? true) ? [row] : [])),
    page({ direction, tenant, matches = () => true }, paging) {
      const step = direction === "oldest-first" ? 1 : -1;
      const rows = entriesFrom(entries, startOf(name, entries, { step, ...paging }), step);
      const isShown = ({ row }: Entry<Row>): boolean => isIn(tenant, row) && matches(row);
      return mapPage(pageOf(rows, { isShown, cursorOf }, paging), ({ row }) => row);
    },
  };
}

function* entriesFrom<One>(entries: readonly One[], from: number, step: 1 | -1): Iterable<One> {
  for (let at = from; ; at += step) {
    const entry = entries[at];
    if (!entry) return;
    yield entry;
  }
}

function isIn(tenant: Tenant, { organizationId }: RowName): boolean {
  return tenant === null || organizationId === tenant;
}

/** The index where a page starts: at one end, or next to the last row of the previous page, even if that row is gone. */
function startOf(
  name: string,
  entries: readonly Entry<unknown>[],
  { step, cursor }: { readonly step: 1 | -1; readonly cursor: string | null },
): number {
  if (cursor === null) return step === 1 ? 0 : entries.length - 1;
  const { order, tie } = decodeCursor(name, cursor);
  const written = Number(tie);
  return step === 1
    ? placeOf(entries, { time: order, written: written + 1 })
    : placeOf(entries, { time: order, written }) - 1;
}

/** The number of entries before this place. */
function placeOf(
  entries: readonly Entry<unknown>[],
  { time, written }: Pick<Entry<unknown>, "time" | "written">,
): number {
  let [from, to] = [0, entries.length];
  while (from < to) {
    const middle = (from + to) >>> 1;
    const entry = entries[middle];
    if (entry && (entry.time < time || (entry.time === time && entry.written < written)))
      from = middle + 1;
    else to = middle;
  }
  return from;
}

const maxCandidates = 100;

/** The 100 most recently updated Sessions of one key and source: the candidates for a request without ids. */
class RecentSessions {
  readonly #rows: SessionRow[] = [];
  /** Compared before the row itself, because most rows don't match. Oldest update first. */
  readonly #lengths: number[] = [];
  readonly headPrefixes: number[] = [];
  readonly #inFlight: boolean[] = [];

  touch(row: SessionRow, { length, head, inFlight }: SessionState): void {
    const place = this.#rows.indexOf(row);
    if (place >= 0) this.#remove(place);
    this.#rows.push(row);
    this.#lengths.push(length);
    this.headPrefixes.push(Number.parseInt(head.slice(0, prefixDigits), 16));
    this.#inFlight.push(inFlight);
    if (this.#rows.length > maxCandidates) this.#remove(0);
  }

  /** The Sessions whose head may be the chain's value at their length, without those in flight of the same length. */
  prefixCandidates(chain: Buffer): readonly SessionRow[] {
    const max = chain.length / valueBytes;
    const candidates: SessionRow[] = [];
    for (let at = 0; at < this.#rows.length; at++) {
      const length = this.#lengths[at] ?? 0;
      if (length === 0 || length > max || (length === max && this.#inFlight[at])) continue;
      const row = this.#rows[at];
      if (
        row &&
        chain.readUIntBE((length - 1) * valueBytes, prefixDigits / 2) === this.headPrefixes[at]
      )
        candidates.push(row);
    }
    return candidates;
  }

  #remove(place: number): void {
    this.#rows.splice(place, 1);
    this.#lengths.splice(place, 1);
    this.headPrefixes.splice(place, 1);
    this.#inFlight.splice(place, 1);
  }
}

const valueBytes = 32;
/** Three bytes, which fit a small integer. */
const prefixDigits = 6;

/** Makes a Session the most recently updated one of its key. */
export function touchSession(state: State, session: SessionRow, record: SessionState): void {
  session.record = { ...record, updated: ++state.updates };
  const { organizationId, keyId, source } = record;
  const recent = state.keys.get(organizationId, keyId)?.recent;
  if (recent === undefined) return;
  const ofSource = recent.get(source) ?? new RecentSessions();
  if (!recent.has(source)) recent.set(source, ofSource);
  ofSource.touch(session, record);
}

/** The counters of all budgets. A counter starts with its first hold. */
interface Counters {
  get(key: BudgetCounterKey): BudgetCounter | null;
  set(counter: BudgetCounter): void;
  page(query: CounterQuery, paging: StorePaging): StorePage<BudgetCounter>;
  all(): readonly BudgetCounter[];
}

interface CounterQuery {
  readonly budgetId: string;
  readonly subject?: string;
  readonly periodStart?: number;
}

function createCounters(): Counters {
  const budgets = new Map<string, Map<string, BudgetCounter>>();
  return {
    get: (key) => budgets.get(key.budgetId)?.get(counterKey(key)) ?? null,
    set(counter) {
      const ofBudget = budgets.get(counter.budgetId);
      const key = counterKey(counter);
      if (ofBudget) ofBudget.set(key, counter);
      else budgets.set(counter.budgetId, new Map([[key, counter]]));
    },
    all: () => [...budgets.values()].flatMap((ofBudget) => [...ofBudget.values()]),
    page({ budgetId, subject, periodStart }, paging) {
      const rows = [...(budgets.get(budgetId)?.values() ?? [])].filter(
        (row) =>
          (subject === undefined || row.subject === subject) &&
          (periodStart === undefined || row.periodStart === periodStart),
      );
      const placeOf = (row: BudgetCounter): Place => ({ order: row.periodStart, tie: row.subject });
      return sortedPage({ name: "counters", rows, placeOf, compare: newestPeriodFirst }, paging);
    },
  };
}

function counterKey({ subject, periodStart }: BudgetCounterKey): string {
  return `${periodStart}/${subject}`;
}

/** Newest period first, then by subject. */
function newestPeriodFirst(a: Place, b: Place): number {
  return b.order - a.order || (a.tie < b.tie ? -1 : a.tie > b.tie ? 1 : 0);
}

/** The stored responses. Each is linked to the one it is built on, or has the messages before it. */
interface Responses extends Omit<ResponseView, "response" | "expiredClaims"> {
  response(organizationId: string, id: string): ResponseRecord | null;
  /** A response and the responses it is built on, oldest first. */
  chain(response: ResponseRecord): readonly ResponseRecord[];
  /** Adds a response, or replaces it. */
  set(record: ResponseRecord): void;
  remove(name: RowName): void;
}

function createResponses(): Responses {
  const rows = new Map<string, ResponseRecord>();
  /** The ids of continuations, by the response they are built on. */
  const continuations = new Map<string, Set<string>>();

  const response = (organizationId: string, id: string): ResponseRecord | null =>
    rows.get(keyOf({ organizationId, id })) ?? null;
  const previous = ({ organizationId, builtOn }: ResponseRecord): ResponseRecord | null =>
    builtOn === null ? null : response(organizationId, builtOn);
  const unlink = ({ organizationId, id, builtOn }: ResponseRecord): void => {
    if (builtOn === null) return;
    const name = keyOf({ organizationId, id: builtOn });
    continuations.get(name)?.delete(id);
    if (continuations.get(name)?.size === 0) continuations.delete(name);
  };
  const remove = (name: RowName): void => {
    const row = response(name.organizationId, name.id);
    if (row) unlink(row);
    rows.delete(keyOf(name));
  };
  return {
    response,
    chain(last) {
      const newestFirst: ResponseRecord[] = [];
      for (let at: ResponseRecord | null = last; at; at = previous(at)) newestFirst.push(at);
      return newestFirst.toReversed();
    },
    messagesOf(organizationId, id) {
      const row = response(organizationId, id);
      if (!row) throw new TypeError("Unknown response.");
      return row;
    },
    continuations: (organizationId, id) => [
      ...(continuations.get(keyOf({ organizationId, id })) ?? []),
    ],
    expiredResponses(at, limit) {
      const expired = [...rows.values()].filter(({ expiresAt }) => expiresAt <= at);
      return expired.sort(byExpiry).slice(0, limit);
    },
    set(record) {
      remove(record);
      const { organizationId, id, builtOn } = record;
      rows.set(keyOf(record), record);
      if (builtOn === null) return;
      const name = keyOf({ organizationId, id: builtOn });
      continuations.set(name, (continuations.get(name) ?? new Set()).add(id));
    },
    remove,
  };
}

/** The key of a claim as one text. */
export function claimKeyOf({ organizationId, keyId, endpoint, keySha256 }: ClaimKey): string {
  return JSON.stringify([organizationId, keyId, endpoint, keySha256]);
}

/** An id is unique only within its organization. */
function keyOf({ organizationId, id }: RowName): string {
  return JSON.stringify([organizationId, id]);
}

function byExpiry(a: ResponseRecord, b: ResponseRecord): number {
  return a.expiresAt - b.expiresAt;
}

/** Copies a response and its bytes, so later changes to the original don't show. */
export function copyResponse({
  builtOn: _builtOn,
  inherited: _inherited,
  idempotencyKeySha256: _key,
  ...response
}: ResponseRecord): StoredResponse {
  return {
    ...response,
    body: new Uint8Array(response.body),
    input: new Uint8Array(response.input),
    messages: new Uint8Array(response.messages),
  };
}
