import { randomBytes } from "node:crypto";
import {
  type AdminToken,
  type ApiKey,
  type Budget,
  type BudgetCounter,
  type BudgetCounterKey,
  type BudgetRaise,
  type Checkpoint,
  createInFlight,
  type EvidenceLeaf,
  type HourDetail,
  type InFlight,
  isChangeKind,
  type Owner,
  type PolicyDecision,
  type RateLimit,
  type SealedConnection,
  type StoredResponse,
  type StorePage,
  type StorePaging,
  type UsageHour,
} from "@tollgate/core/store";
import {
  type ClaimKey,
  type ClaimRecord,
  type CorrectionRecord,
  compareBytes,
  type ErrorRecord,
  type HoldRecord,
  keptExpiry,
  type PartRecord,
  type ResponseRecord,
  type ResponseView,
  type RowName,
  type SessionState,
  type StepRecord,
  type TurnRecord,
} from "@tollgate/store-engine";
import { type Place, sortedPage } from "./page.ts";
import { createRows, createTable, type Rows, type Table } from "./table.ts";

/** Everything a memory store keeps. */
export interface State {
  /** Seals the cursors of organizations. */
  readonly cursorSecret: string;
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
  readonly steps: Table<StepRow>;
  /** The Turns whose first Step was removed. The others are found by that Step, whose id they have. */
  readonly keptTurns: Table<TurnRecord>;
  readonly openSteps: InFlight<StepRow>;
  /** Every Step that ever had a hold: the ledger of the counters. */
  readonly stepsWithHolds: StepRow[];
  /** Every correction of these Steps, in the order made. */
  readonly corrections: { readonly step: StepRow; readonly correction: CorrectionRecord }[];
  readonly decisions: Table<DecisionRow>;
  /** Every leaf, in the order written. */
  readonly leaves: Rows<LeafRow>;
  /** The log of each organization, by its id. */
  readonly logs: Map<string, Log>;
  /** The leaves of administrative changes, by time. */
  readonly changes: Rows<LeafRow>;
  readonly leases: Map<string, Lease>;
  readonly budgets: Map<string, Budget>;
  readonly rateLimits: Map<string, RateLimit>;
  readonly adminTokens: Table<AdminTokenRow>;
  readonly raises: BudgetRaise[];
  readonly counters: Counters;
  readonly responses: Responses;
  /** By time, then by the order written. */
  readonly usage: Readonly<Record<HourDetail, Table<UsageHour>>>;
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
  return {
    cursorSecret: randomBytes(32).toString("hex"),
    salts: new Map(),
    keys: createTable("keys", ({ key }) => key.createdAt),
    secretlessKeys: new Map(),
    secrets: new Map(),
    connections: new Map(),
    sessions: createTable("sessions"),
    erasedUpTo: new Map(),
    steps: createTable("steps", ({ record }) => record.step.openedAt),
    keptTurns: createTable("turns"),
    openSteps: createInFlight(),
    stepsWithHolds: [],
    corrections: [],
    decisions: createTable("decisions", ({ decision }) => decision.at),
    leaves: createRows("leaves"),
    logs: new Map(),
    changes: createRows("changes", ({ at }) => at),
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

/** The Session of a Turn, with its owner; null if the organization has no such Turn. */
export function turnOf(
  { steps, keptTurns }: State,
  { organizationId, id }: RowName,
): TurnRecord | null {
  const step = steps.get(organizationId, id)?.record.step;
  if (!step) return keptTurns.get(organizationId, id);
  const { userId, keyId, sessionId, turnId } = step;
  if (sessionId === null || turnId !== id) return null;
  return { organizationId, userId, keyId, id, sessionId };
}

export function insertLeaf({ leaves, changes, logs }: State, leaf: EvidenceLeaf): void {
  const { id, organizationId, kind, at, meta, hash } = leaf;
  const hex = Buffer.from(hash.buffer, hash.byteOffset, hash.length).toString("hex");
  const row = { id, organizationId, kind, at, meta, hash: hex };
  leaves.insert(row);
  let log = logs.get(organizationId);
  if (log === undefined) {
    log = { leaves: [], checkpoints: [] };
    logs.set(organizationId, log);
  }
  log.leaves.push(row);
  if (isChangeKind(kind)) changes.insert(row);
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
  /** All branches of the tree that grew from this one, by their heads. Null before the first. */
  branches: Map<string, Set<SessionRow>> | null;
  /** Sessions whose history begins with messages of this one. Null if there are none. */
  heirs: SessionRow[] | null;
  /** Everything its Steps added, in the order it was written. */
  readonly parts: PartRow[];
  errors: readonly ErrorRow[];
  /** How many of its parts and errors are erased: the first ones. */
  readonly erased: { parts: number; errors: number };
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

export interface DecisionRow extends Owner {
  readonly id: string;
  readonly decision: PolicyDecision;
}

interface Lease {
  readonly renewal: number;
  readonly until: number;
}

const maxCandidates = 100;

/** The 100 most recently updated Sessions of one key and source: the candidates for a request without ids. */
class RecentSessions {
  /** Begins with up to 99 older ones, because removing many at once is cheaper than removing one each time. */
  readonly #rows: SessionRow[] = [];
  /** Compared before the row itself, because most rows don't match. Oldest update first. */
  readonly #lengths: number[] = [];
  readonly headPrefixes: number[] = [];
  readonly #inFlight: boolean[] = [];

  touch(row: SessionRow, { length, head, inFlight }: SessionState): void {
    const place = this.#rows.lastIndexOf(row);
    if (place >= 0) this.#remove(place, 1);
    this.#rows.push(row);
    this.#lengths.push(length);
    this.headPrefixes.push(Number.parseInt(head.slice(0, prefixDigits), 16));
    this.#inFlight.push(inFlight);
    if (this.#rows.length === 2 * maxCandidates) this.#remove(0, maxCandidates);
  }

  /** The Sessions whose head may be the chain's value at their length, without those in flight of the same length. */
  prefixCandidates(chain: Buffer): readonly SessionRow[] {
    const max = chain.length / valueBytes;
    const candidates: SessionRow[] = [];
    for (let at = Math.max(this.#rows.length - maxCandidates, 0); at < this.#rows.length; at++) {
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

  #remove(place: number, count: number): void {
    this.#rows.splice(place, count);
    this.#lengths.splice(place, count);
    this.headPrefixes.splice(place, count);
    this.#inFlight.splice(place, count);
  }
}

const valueBytes = 32;
/** Three bytes, which fit a small integer. */
const prefixDigits = 6;

/** Makes a Session the most recently updated one of its key. */
export function touchSession(state: State, session: SessionRow, record: SessionState): void {
  if (record.rootSessionId !== null) moveBranch(state, session, record);
  session.record = { ...record, updated: ++state.updates };
  const { organizationId, keyId, source } = record;
  const recent = state.keys.get(organizationId, keyId)?.recent;
  if (recent === undefined) return;
  const ofSource = recent.get(source) ?? new RecentSessions();
  if (!recent.has(source)) recent.set(source, ofSource);
  ofSource.touch(session, record);
}

/** Moves a branch to its new head among those of its tree. */
function moveBranch(
  state: State,
  session: SessionRow,
  { rootSessionId, head }: SessionState,
): void {
  const root = rootSessionId && state.sessions.get(session.organizationId, rootSessionId);
  if (!root) return;
  root.branches ??= new Map();
  const before = root.branches.get(session.record.head);
  before?.delete(session);
  if (before?.size === 0) root.branches.delete(session.record.head);
  const ofHead = root.branches.get(head) ?? new Set();
  root.branches.set(head, ofHead.add(session));
}

/** The counters of all budgets. A counter starts with its first hold. */
interface Counters {
  get(key: BudgetCounterKey): BudgetCounter | null;
  set(counter: BudgetCounter): void;
  page(query: CounterQuery, paging: StorePaging): StorePage<BudgetCounter>;
  /** Their keys, in the order in which they began. */
  readonly inOrder: readonly BudgetCounterKey[];
}

interface CounterQuery {
  readonly budgetId: string;
  readonly subject?: string;
  readonly periodStart?: number;
}

function createCounters(): Counters {
  /** By budget, subject and start of the period. */
  const budgets = new Map<string, Map<string, Map<number, BudgetCounter>>>();
  const inOrder: BudgetCounterKey[] = [];
  const find = ({ budgetId, subject, periodStart }: BudgetCounterKey): BudgetCounter | null =>
    budgets.get(budgetId)?.get(subject)?.get(periodStart) ?? null;
  const ofBudget = (budgetId: string): readonly BudgetCounter[] =>
    [...(budgets.get(budgetId)?.values() ?? [])].flatMap((periods) => [...periods.values()]);
  return {
    get: find,
    set(counter) {
      const { budgetId, subject, periodStart } = counter;
      const subjects = budgets.get(budgetId) ?? new Map<string, Map<number, BudgetCounter>>();
      const periods = subjects.get(subject) ?? new Map<number, BudgetCounter>();
      if (subjects.size === 0) budgets.set(budgetId, subjects);
      if (periods.size === 0) subjects.set(subject, periods);
      if (!periods.has(periodStart)) inOrder.push({ budgetId, subject, periodStart });
      periods.set(periodStart, counter);
    },
    inOrder,
    page({ budgetId, subject, periodStart }, paging) {
      const rows = ofBudget(budgetId).filter(
        (row) =>
          (subject === undefined || row.subject === subject) &&
          (periodStart === undefined || row.periodStart === periodStart),
      );
      const placeOf = (row: BudgetCounter): Place => ({ order: row.periodStart, tie: row.subject });
      return sortedPage({ name: "counters", rows, placeOf, compare: newestPeriodFirst }, paging);
    },
  };
}

/** Newest period first, then by subject. */
function newestPeriodFirst(a: Place, b: Place): number {
  return b.order - a.order || compareBytes(a.tie, b.tie);
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
    continuations(organizationId, id, limit) {
      const ids: string[] = [];
      for (const one of continuations.get(keyOf({ organizationId, id })) ?? [])
        if (ids.push(one) === limit) break;
      return ids;
    },
    expiredResponses(at, limit) {
      const expired = [...rows.values()].filter(
        ({ expiresAt }) => expiresAt > keptExpiry && expiresAt <= at,
      );
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

/** The name of a row as one text. An id is unique only within its organization. */
export function keyOf({ organizationId, id }: RowName): string {
  return JSON.stringify([organizationId, id]);
}

function byExpiry(a: ResponseRecord, b: ResponseRecord): number {
  return a.expiresAt - b.expiresAt;
}

/** Copies a response and its bytes, so later changes to the original don't show. */
export function copyResponse({
  messages: _messages,
  builtOn: _builtOn,
  inherited: _inherited,
  idempotencyKeySha256: _key,
  ...response
}: ResponseRecord): StoredResponse {
  return {
    ...response,
    body: new Uint8Array(response.body),
    input: new Uint8Array(response.input),
  };
}

/** Ids of organizations that ever had a key: the first ones after an id, in order. */
export function organizationsAfter(
  { salts }: State,
  after: string,
  limit: number,
): readonly string[] {
  const later = [...salts.keys()].filter((id) => compareBytes(id, after) > 0);
  return later.sort(compareBytes).slice(0, limit);
}
