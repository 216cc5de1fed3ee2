import {
  type Change,
  type Decision,
  isPrefix,
  type RowName,
  type View,
} from "@tollgate/store-engine";
import {
  createKnownRecent,
  createKnownRows,
  noteChange,
  type SqlParameters,
  viewKnown,
} from "@tollgate/store-sql";
import type { Connection } from "../database/connection.ts";
import { isLockTimeout, mayBeDone, PostgresFailure } from "../database/failure.ts";
import { anyway, type PauseAfter, type Repeatable, type Retry } from "../database/retry.ts";
import { promised, type Task } from "../database/task.ts";
import { askFetching } from "./ask-fetching.ts";
import {
  createBatches,
  HeldLocks,
  type PendingDecision,
  type PreparedDecision,
  RunningDrafts,
  type StepEnd,
} from "./batches.ts";
import type { Commit, Outcome } from "./commit.ts";
import { draftOf, type Locks, locksOf } from "./draft.ts";
import { viewAfter, withoutReplaced } from "./followers.ts";
import { isTimeout, Lane, type TakeTurn } from "./lane.ts";
import { isSameRow, lockRows } from "./lock-rows.ts";
import { type ReadSet, recordReads } from "./read-set.ts";

/** Connects the driver to the database. */
export interface DriverTransport {
  readonly commit: Commit;
  readonly tryAgain: Retry;
  readonly pauseAfter: PauseAfter;
  /** Lends a connection whose statements commit one by one. */
  readonly withConnection: <Result>(use: (connection: Connection) => Task<Result>) => Task<Result>;
  /** Runs work in a transaction whose statements use indexes only. */
  readonly transact: <Result>(work: (connection: Connection) => Promise<Result>) => Promise<Result>;
}

/** The result of a decision. */
export interface DecisionOutcome<Result> {
  readonly result: Result;
  /** Whether an earlier run may have committed. */
  readonly isUnsure: boolean;
}

/** A decision of the rules. It has no side effects, so it may be made again. */
export type Decide<Result> = (view: View) => Decision<Result>;

/** Decides on the rows this process knows, then has the database compare them as it writes the change. */
export interface Driver {
  /** Opens a Step, in one statement with others if the known rows are enough. */
  open<Result>(decide: Decide<Result>): Task<DecisionOutcome<Result>>;
  /** Ends an attempt, in one statement with others. */
  settle<Result>(decide: Decide<Result>): Task<DecisionOutcome<Result>>;
  /** Runs a decision in its own transaction, which first locks what it changes. */
  alone<Result>(decide: Decide<Result>, how: Repeatable & Beginning): Promise<Result>;
  /** Answers a question without changing anything. */
  ask<Answer>(question: (view: View) => Answer): Promise<Answer>;
  /** How many decisions wait for their turn. Those that wait for a connection don't count. */
  waiting(): number;
}

/** The first statements of a transaction. */
export interface Beginning {
  /** A statement that waits for an advisory lock, and its parameters. */
  readonly turn?: readonly [text: string, parameters: SqlParameters];
  /** Rows that it locks in any case, so they are read once. */
  readonly locks?: LockedNames;
}

const lockedTables = ["steps", "sessions", "responses"] as const;
type LockedNames = Partial<Readonly<Record<(typeof lockedTables)[number], readonly RowName[]>>>;

/** Stale decisions that are made again in a batch before they run alone. */
const maxStaleRounds = 2;

/** Rounds of locking and deciding before a decision gives up. */
const maxRounds = 20;

export function createDriver(transport: DriverTransport): Driver {
  const { commit, tryAgain, pauseAfter, transact, withConnection } = transport;
  const underWay = new RunningDrafts();
  const lane = new Lane();
  const known = createKnown();

  const runAlone = async <Result>(
    decide: Decide<Result>,
    { turn, locks = {} }: Beginning = {},
  ): Promise<Result> => {
    const { result, looked, change, outcome } = await transact(async (connection) => {
      if (turn) await connection.get(...turn);
      const locked = new Set<string>();
      await lockNew(connection, locks, locked);
      const held = new HeldLocks(underWay);
      try {
        return await decideLocked(connection, { commit, decide, locked, held });
      } finally {
        held.release();
      }
    });
    known.learn(looked);
    if (outcome?.kind === "written") known.note(change, outcome.number);
    return result;
  };
  const answer = (drafts: readonly Answering[], outcomes: readonly Outcome[]): void => {
    const written = drafts.map(({ change }, at) =>
      outcomes[at]?.kind === "written" ? change : [],
    );
    for (const [at, change] of withoutReplaced(written).entries()) {
      const outcome = outcomes[at];
      if (outcome?.kind === "written") known.note(change, outcome.number);
    }
    for (const [at, outcome] of outcomes.entries()) drafts[at]?.answer(outcome);
  };
  const send =
    (connection: Connection, drafts: readonly Answering[]): Task<void> =>
    ({ resolve, reject }) => {
      const writing = commit.send(connection, drafts);
      writing({
        resolve(outcomes) {
          answer(drafts, outcomes);
          resolve();
        },
        reject(error) {
          // The known rows may be wrong.
          if (mayBeDone(error)) known.forget();
          reject(error);
        },
      });
    };
  const batches = createBatches<Answering>({ withConnection, pauseAfter, send, underWay, lane });
  const together =
    (end: StepEnd) =>
    <Result>(decide: Decide<Result>): Task<DecisionOutcome<Result>> =>
    ({ resolve, reject }) => {
      const stale = { rounds: 0 };
      const again = (): void => batches.add(waiting);
      const waiting: PendingDecision<Answering> = {
        end,
        draft: (before) => prepare({ waiting, decide, known, resolve, again, stale }, before),
        runAlone(failure) {
          // A timeout or a lock may last, so the lane limits how many wait for it. Other failures have waited long enough.
          const isInLane = failure === null || isTimeout(failure) || isLockTimeout(failure);
          const takeTurn: TakeTurn = isInLane ? lane.turns(failure) : (work) => work();
          const run = async (isUnsure: boolean) => ({
            result: await takeTurn(() => runAlone(decide)),
            isUnsure,
          });
          void tryAgain(run, { evenIfDone: true, failure }).then(resolve, reject);
        },
        reject,
      };
      batches.add(waiting);
    };
  return {
    open: together("opening"),
    settle: together("settling"),
    alone: (decide, how) => tryAgain(() => runAlone(decide, how), how),
    ask: (question) =>
      tryAgain(() => transact((connection) => askFetching(connection, question)), anyway),
    waiting: () => batches.waiting() + lane.waiting,
  };
}

/** A prepared decision that receives its outcome. */
interface Answering extends PreparedDecision<Answering> {
  answer(outcome: Outcome): void;
}

/** Decides on the known rows. Null if the decision reads others, or if it changes nothing, because no commit would compare what it read. */
function prepare<Result>(
  one: {
    readonly waiting: PendingDecision<Answering>;
    readonly decide: Decide<Result>;
    readonly known: Known;
    readonly resolve: (carriedOut: DecisionOutcome<Result>) => void;
    /** Queues it to be decided again. */
    readonly again: () => void;
    readonly stale: { rounds: number };
  },
  before: readonly Answering[],
): Answering | null {
  const { waiting, decide, known, resolve, again, stale } = one;
  const { notes } = known;
  const { view, looked } = recordReads(viewAfter(known.view, before));
  const decided = unlessThrown(() => decide(view));
  if (!decided || decided.change.length === 0) return null;
  const { change, resultIfOverLimit } = decided;
  return {
    ...draftOf(change, looked, { before, comparesAll: true }),
    waiting,
    answer(outcome) {
      if (outcome.kind === "written")
        resolve({ result: resultOf(decided, outcome.paces), isUnsure: false });
      else if (outcome.kind === "refused" && resultIfOverLimit)
        resolve({ result: resultIfOverLimit(outcome.move, outcome.left), isUnsure: false });
      else if (known.notes !== notes && stale.rounds++ < maxStaleRounds) again();
      else waiting.runAlone(null);
    },
  };
}

/** An error on outdated rows does not count: the decision runs again on current ones. */
function unlessThrown<Result>(decide: () => Result): Result | null {
  try {
    return decide();
  } catch {
    return null;
  }
}

/** Adds the paces, which are known only after they moved. */
function resultOf<Result>(
  { result, resultWithPaces }: Decision<Result>,
  paces: readonly number[],
): Result {
  return paces.length === 0 || !resultWithPaces ? result : resultWithPaces(paces);
}

/** Locks the rows that a decision changes, decides on their current state, and writes the change. */
async function decideLocked<Result>(
  connection: Connection,
  {
    commit,
    decide,
    locked,
    held,
  }: {
    readonly commit: Commit;
    readonly decide: Decide<Result>;
    readonly locked: Set<string>;
    readonly held: HeldLocks;
  },
): Promise<{
  readonly result: Result;
  readonly looked: ReadSet;
  readonly change: Change;
  readonly outcome: Outcome | null;
}> {
  let before: ReadSet | null = null;
  let own: Locks["sessions"] = [];
  for (let round = 0; round < maxRounds; round++) {
    const { decision, looked } = await askFetching(connection, (rows) => {
      const watched = recordReads(before ? withMatchesOf(before, rows, own) : rows);
      return { decision: decide(watched.view), looked: watched.looked };
    });
    const { result, change, resultIfOverLimit } = decision;
    if (change.length === 0) return { result, looked, change, outcome: null };
    const locks = locksOf(change, looked);
    [before, own] = [looked, locks.sessions];
    held.take(locks);
    if (await lockNew(connection, lockedFirst(change, looked), locked)) continue;
    const draft = draftOf(change, looked, { before: [], comparesAll: false });
    const [outcome] = await promised(commit.send(connection, [draft]));
    if (outcome?.kind === "written")
      return { result: resultOf(decision, outcome.paces), looked, change, outcome };
    if (outcome?.kind === "refused" && resultIfOverLimit)
      return { result: resultIfOverLimit(outcome.move, outcome.left), looked, change, outcome };
  }
  throw new PostgresFailure("The rows kept changing.", { isPassing: true });
}

/**
 * Searches once for the Sessions that a request may continue. Of those found, the locked ones are read again and the
 * others stay as found. Otherwise a Session that many requests continue would be stale in every round.
 */
function withMatchesOf(before: ReadSet, rows: View, locked: Locks["sessions"]): View {
  return {
    ...rows,
    recentMatches(owner, source, chain) {
      const still = (before.matches[0]?.found ?? []).flatMap((session) => {
        if (!locked.some((one) => isSameRow(one, session))) return session;
        const current = rows.session(session.organizationId, session.id);
        return current && isPrefix(current, chain) ? current : [];
      });
      return still.length > 0 ? still : rows.recentMatches(owner, source, chain);
    },
  };
}

/**
 * The rows to lock before the decision: a new branch or continuation does not change its origin's row, and erased rows must
 * not be in use. Every other row is locked and compared when the change is written.
 */
function lockedFirst(change: Change, looked: ReadSet): LockedNames {
  const { sessions, responses } = locksOf(change, looked);
  const isMoved = (session: RowName): boolean =>
    change.some(({ write, row }) => write === "update session" && isSameRow(row, session));
  return { sessions: sessions.filter((session) => !isMoved(session)), responses };
}

/** Locks the rows that are not locked yet, in the common order. Returns whether there were any; then the decision may differ. */
async function lockNew(
  connection: Connection,
  locks: LockedNames,
  locked: Set<string>,
): Promise<boolean> {
  let isNew = false;
  for (const table of lockedTables) {
    const rows = (locks[table] ?? []).filter(({ organizationId, id }) => {
      const name = JSON.stringify([table, organizationId, id]);
      return !locked.has(name) && locked.add(name);
    });
    if (rows.length === 0) continue;
    await lockRows(connection, table, rows);
    isNew = true;
  }
  return isNew;
}

/** The rows as this process last saw them. Other processes write too, so each commit compares them. */
interface Known {
  /** Throws if a row is not known. */
  readonly view: View;
  /** Changes noted so far. */
  readonly notes: number;
  learn(looked: ReadSet): void;
  note(change: Change, number: number): void;
  forget(): void;
}

function createKnown(): Known {
  const recent = createKnownRecent(0, () => []);
  // Reading a row again would take another transaction.
  const rows = createKnownRows(recent, { ways: 4 });
  let budgetsVersion: number | null = null;
  let notes = 0;
  const forget = (): void => {
    rows.clear();
    budgetsVersion = null;
  };
  return {
    view: viewKnown(
      {
        ...unknown,
        budgetsVersion: () => budgetsVersion ?? notKnown(),
        openedBefore: (organizationId, id) => rows.steps.get(organizationId, id)?.record ?? null,
      },
      rows,
    ),
    learn(looked) {
      for (const { organizationId, id, key } of looked.keys) rows.keys.set(organizationId, id, key);
      budgetsVersion = looked.budgetsVersion ?? budgetsVersion;
    },
    get notes() {
      return notes;
    },
    note(change, number) {
      notes++;
      noteChange(rows, change, number);
    },
    forget,
  };
}

const missing = new TypeError("the rows that this process knows are not enough");

function notKnown(): never {
  throw missing;
}

/**
 * Most requests begin something new, so a row that this process has not written is taken to be absent. The commit finds out
 * otherwise by the Step's own row, the claim, the match and the counters.
 */
const unknown: View = {
  openedBefore: () => null,
  claim: () => null,
  recentMatches: () => [],
  counter: () => null,
  hasDecision: () => false,
  budgetsVersion: notKnown,
  key: notKnown,
  step: notKnown,
  holds: notKnown,
  session: notKnown,
  sessionOfTurn: notKnown,
  matchingBranches: notKnown,
  chainBefore: notKnown,
  corrections: notKnown,
  response: notKnown,
  continuations: notKnown,
  expiredResponses: notKnown,
  expiredClaims: notKnown,
  organizationsOfOldSteps: notKnown,
  oldSteps: notKnown,
  organizationsOfOldSessions: notKnown,
  sessionsInOrder: notKnown,
  isNeededSince: notKnown,
  contents: notKnown,
};
