import {
  type ApiKey,
  type Budget,
  type BudgetRaise,
  createInFlight,
  type EvidenceLeaf,
  type InFlight,
  isChangeKind,
  type Owner,
  type PolicyDecision,
  type SealedConnection,
} from "@tollgate/core/store";
import type {
  CorrectionRecord,
  ErrorRecord,
  HoldRecord,
  PartRecord,
  SessionState,
  StepRecord,
  TurnRecord,
} from "@tollgate/store-engine";
import { type Counters, createCounters } from "./counters.ts";
import { createResponses, type Responses } from "./responses.ts";
import { createTable, type Table } from "./table.ts";

export interface KeyRow {
  readonly id: string;
  readonly organizationId: string;
  key: ApiKey;
  readonly secrets: SecretRow[];
  /** Its most recently updated Sessions of each source. */
  readonly recent: Map<string, RecentSessions>;
}

export interface SecretRow {
  readonly keyRow: KeyRow;
  expiresAt: number | null;
}

export interface SessionRow {
  readonly id: string;
  readonly organizationId: string;
  record: SessionState;
  /** Sessions that branched from this one. */
  branches: readonly SessionRow[];
  /** What its Steps added, what is recorded on them alone included, in the order it was written. */
  readonly parts: PartRow[];
  errors: readonly ErrorRow[];
  /** Whether anything was recorded of what was said in it since that was last erased. */
  holdsContent: boolean;
}

/**
 * A part with its chain in hex and its content in latin1, a character for each byte: a text is lighter to make and to keep
 * than bytes. Nobody asks for salts and commitments.
 */
export interface PartRow extends Pick<PartRecord, "stepId" | "kind" | "position" | "count"> {
  readonly chain: string;
  content: string | null;
}

/** What a provider said of an attempt; null where only its commitment is kept. */
export interface ErrorRow extends Pick<ErrorRecord, "attempt"> {
  message: string | null;
}

export interface StepRow {
  readonly id: string;
  readonly organizationId: string;
  /** How often its process had renewed its lease when it opened. */
  readonly renewal: number;
  record: StepRecord;
  /** Every hold it took, those that are settled too. */
  holds: readonly HoldRecord[];
  errors: readonly ErrorRow[];
  corrections: readonly CorrectionRecord[];
  outputTokens: number | null;
  /** The latest renewal of its process's lease that named it. */
  lastRenewal: number;
  /** Its slot among the open Steps; null once it is settled. */
  openSlot: number | null;
}

/** A leaf with its hash in hex: a text is lighter to keep than bytes. */
export type LeafRow = Omit<EvidenceLeaf, "hash"> & { readonly hash: string };

/** Every leaf, in the order they were written; those of administrative changes are kept by their time as well. */
export interface Leaves extends Pick<Table<LeafRow>, "page"> {
  insert(leaf: EvidenceLeaf): void;
}

export interface DecisionRow extends Owner {
  readonly id: string;
  readonly decision: PolicyDecision;
}

export interface Lease {
  readonly renewal: number;
  readonly until: number;
}

/** Everything a memory store keeps. */
export interface State {
  readonly salts: Map<string, Uint8Array>;
  readonly keys: Table<KeyRow>;
  /** Those without a secret, by organization, user and label. */
  readonly secretlessKeys: Map<string, KeyRow>;
  /** By the digest of the secret, in hex. */
  readonly secrets: Map<string, SecretRow>;
  /** By organization and gateway. */
  readonly connections: Map<string, SealedConnection>;
  readonly sessions: Table<SessionRow>;
  /** Up to which update each organization's Sessions were looked at for what is to be erased. */
  readonly erasedUpTo: Map<string, number>;
  readonly turns: Table<TurnRecord>;
  readonly steps: Table<StepRow>;
  readonly openSteps: InFlight<StepRow>;
  /** Every Step that ever held something: the ledger of the counters. */
  readonly stepsWithHolds: Set<StepRow>;
  readonly decisions: Table<DecisionRow>;
  readonly leaves: Leaves;
  /** Those of administrative changes, by their time. */
  readonly changes: Table<LeafRow>;
  readonly leases: Map<string, Lease>;
  readonly budgets: Map<string, Budget>;
  readonly raises: BudgetRaise[];
  readonly counters: Counters;
  readonly responses: Responses;
  budgetsVersion: number;
  /** The policy that decided last; null before the first. */
  policyVersion: string | null;
  updates: number;
}

export function createState(): State {
  const changes = createTable<LeafRow>("changes", ({ at }) => at);
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
    leaves: leavesWith(changes),
    changes,
    leases: new Map(),
    budgets: new Map(),
    raises: [],
    counters: createCounters(),
    responses: createResponses(),
    budgetsVersion: 0,
    policyVersion: null,
    updates: 0,
  };
}

function leavesWith(changes: Table<LeafRow>): Leaves {
  const leaves = createTable<LeafRow>("leaves");
  return {
    page: leaves.page,
    insert({ hash, ...leaf }) {
      const row = { ...leaf, hash: Buffer.from(hash).toString("hex") };
      if (leaves.insert(row) && isChangeKind(leaf.kind)) changes.insert(row);
    },
  };
}

const maxCandidates = 100;

/** The 100 most recently updated Sessions of one key and source: those that a request without ids may continue. */
export class RecentSessions {
  readonly #rows: SessionRow[] = [];
  /** What is looked at first of each, oldest first: most rows do not match. */
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

  /** Those whose head may be the chain's value at their length, without those that are in flight and as long. */
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
/** Three bytes: small enough to be compared as they are kept. */
const prefixDigits = 6;

/** Makes a Session its key's most recently updated one. */
export function touchSession(state: State, session: SessionRow, record: SessionState): void {
  session.record = { ...record, updated: ++state.updates };
  const { organizationId, keyId, source } = record;
  const recent = state.keys.get(organizationId, keyId)?.recent;
  if (recent === undefined) return;
  const ofSource = recent.get(source) ?? new RecentSessions();
  if (!recent.has(source)) recent.set(source, ofSource);
  ofSource.touch(session, record);
}
