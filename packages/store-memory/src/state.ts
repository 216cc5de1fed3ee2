import {
  type ApiKey,
  type Budget,
  type BudgetRaise,
  type CommittedContent,
  createInFlight,
  type EvidenceLeaf,
  type Hold,
  type InFlight,
  isChangeKind,
  type Owner,
  type PolicyDecision,
  type SealedConnection,
  type Step,
  type StepReply,
  type TranscriptPart,
} from "@tollgate/core/store";
import { type Counters, createCounters } from "./counters.ts";
import { createResponses, type Responses } from "./responses.ts";
import { createTable, type Table } from "./table.ts";

export const chainValueBytes = 32;

export interface KeyRow {
  readonly id: string;
  readonly organizationId: string;
  key: ApiKey;
  readonly secrets: SecretRow[];
}

export interface SecretRow {
  readonly keyRow: KeyRow;
  expiresAt: number | null;
}

export interface SessionRow extends Owner {
  readonly id: string;
  readonly source: string;
  readonly createdAt: number;
  readonly branchedFrom: SessionRow | null;
  readonly commonLength: number;
  /** Sessions that branched from this one. */
  readonly branches: SessionRow[];
  readonly parts: TranscriptPart[];
  /** Those of its Steps that are still kept. */
  readonly steps: Set<StepRow>;
  /** Whether anything was recorded of what was said in it since that was last erased. */
  holdsContent: boolean;
  /** The Step that created it: an equal request does not match while that Step is in flight. */
  createdBy: StepRow | null;
  /** Chain values of the whole history in hex, one after the other, so that heads compare as text. */
  chain: string;
  /** The last of them; empty for an empty history. */
  head: string;
  length: number;
  /** The data classes of its Steps, and of those of the Sessions it branched from. */
  readonly dataClasses: Set<string>;
  latestTurnId: string;
  updatedAt: number;
  /** The store's counter when it was last updated: unique, so that "most recently" has no ties. */
  updated: number;
}

export interface TurnRow extends Owner {
  readonly id: string;
  readonly session: SessionRow;
}

export interface StepRow {
  readonly id: string;
  readonly organizationId: string;
  readonly process: { readonly id: string; readonly renewal: number };
  readonly session: SessionRow;
  readonly branched: boolean;
  /** Messages in the history it was sent on. */
  readonly length: number;
  instructions: CommittedContent | null;
  step: Step;
  /** Every hold it took, those that are settled too. */
  holds: readonly HoldRow[];
  /** What ended attempts were charged while their holds were kept for the next attempt. */
  carried: { readonly usd: number; readonly tokens: number };
  outputTokens: number | null;
  /** The latest renewal of its process's lease that named it. */
  namedAt: number;
  /** Its slot among the open Steps; null once it is settled. */
  openSlot: number | null;
  /** Kept even when it did not join the Session. */
  reply: StepReply | null;
  reasoning: CommittedContent | null;
}

/** A hold and the attempt that took it; `settled` is null while the amount is held. */
export interface HoldRow {
  readonly attempt: number;
  readonly hold: Hold;
  readonly settled: number | null;
  /** What corrections added since. */
  readonly corrected: number;
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
  readonly keysWithoutSecret: Map<string, KeyRow>;
  /** By the digest of the secret, in hex. */
  readonly secrets: Map<string, SecretRow>;
  /** By organization and gateway. */
  readonly connections: Map<string, SealedConnection>;
  readonly sessions: Table<SessionRow>;
  /** The 100 most recently updated Sessions of each key and source, oldest first. */
  readonly recentSessions: Map<string, SessionRow[]>;
  /** Up to which update each organization's Sessions were looked at for what is to be erased. */
  readonly erasedUpTo: Map<string, number>;
  readonly turns: Table<TurnRow>;
  readonly steps: Table<StepRow>;
  readonly openSteps: InFlight<StepRow>;
  /** Every Step that ever held something: the ledger of the counters. */
  readonly holders: Set<StepRow>;
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
    keysWithoutSecret: new Map(),
    secrets: new Map(),
    connections: new Map(),
    sessions: createTable("sessions"),
    recentSessions: new Map(),
    erasedUpTo: new Map(),
    turns: createTable("turns"),
    steps: createTable("steps", ({ step }) => step.openedAt),
    openSteps: createInFlight(),
    holders: new Set(),
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

const candidates = 100;

/** The Sessions a request without ids may continue, oldest first. */
export function recentSessionsOf(state: State, owner: Owner, source: string): SessionRow[] {
  const name = JSON.stringify([owner.organizationId, owner.userId, owner.keyId, source]);
  const recent = state.recentSessions.get(name) ?? [];
  state.recentSessions.set(name, recent);
  return recent;
}

/** Makes a Session its key's most recently updated one. */
export function touchSession(state: State, session: SessionRow, at: number): void {
  session.updated = ++state.updates;
  session.updatedAt = at;
  const recent = recentSessionsOf(state, session, session.source);
  const place = recent.indexOf(session);
  if (place >= 0) recent.splice(place, 1);
  recent.push(session);
  if (recent.length > candidates) recent.shift();
}
