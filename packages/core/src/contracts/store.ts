import type { CheckpointRepository } from "./checkpoint-repository.ts";
import type { KeyRepository } from "./key-repository.ts";
import type {
  AdminTokenRepository,
  BudgetRepository,
  ConnectionRepository,
  DecisionRepository,
  EvidenceRepository,
  RateLimitRepository,
  ResponseRepository,
  SessionRepository,
  StepRepository,
  UsageRepository,
} from "./repositories.ts";
import type {
  AttemptIntent,
  CorrectionIntent,
  LapsedSteps,
  LeaseClock,
  LeaseRenewal,
  OpenAttemptResult,
  OpenStepResult,
  Refusal,
  SettleStepResult,
  StepIntent,
  StepSettlement,
} from "./step-verbs.ts";

/** How busy a store is in one process. */
export interface StoreStatus {
  /** Calls that wait: for a connection, or for their turn to write. */
  readonly waiting: number;
  /** Connections in use. */
  readonly inUse: number;
  /** The most connections it uses at once. Null if only the owner of its pool knows. */
  readonly most: number | null;
}

/**
 * Persists everything Tollgate governs. Every method is required; there are no capability flags.
 *
 * The verbs are atomic and durable: when the promise resolves, either the whole change is on disk, or the verb refused it
 * and nothing is. When it rejects, the outcome is unknown, and calling again with the same ids must be safe.
 * Times are milliseconds since the epoch on the gateway's clock, except for leases (see LeaseClock). Amounts are safe
 * integers.
 * Content and evidence are bytes, and are read back exactly as written.
 * Locks are always taken in the same order: Step, Session, response, budgets by (budgetId, subject, periodStart).
 */
export interface Store {
  readonly contract: 1;
  /**
   * Creates or upgrades the database schema. Safe on every start, from any number of processes. `check` changes nothing, and
   * rejects if something has to be created or upgraded: with an error whose `needsMigration` says what. Default `auto`.
   */
  migrate(mode?: "auto" | "check"): Promise<void>;
  /** Finishes queued work, and closes everything that the store opened. Safe to call twice. */
  close(): Promise<void>;
  /** How busy the store is in this process, at this moment. Reads nothing, and works before `migrate` and after `close`. */
  status(): StoreStatus;

  /**
   * Assigns Session and Turn, appends the request's new messages, takes the holds (all or none), and writes the
   * decision, the Step, its first attempt and the leaf. Refuses without writing anything.
   */
  openStep(intent: StepIntent): Promise<OpenStepResult>;
  /**
   * Ends the Step's running attempt and opens its next one, releasing the old attempt's holds and taking new ones. Rejects
   * with `step_not_found` if the organization has no such Step, and `invalid_argument` if the attempt isn't running.
   */
  openAttempt(intent: AttemptIntent): Promise<OpenAttemptResult>;
  /**
   * Writes how a Step ended: its reply, attempts, charges against its holds, and leaf. A Step is settled once: later
   * settlements change nothing, and their result says so. Rejects like `openAttempt`.
   */
  settleStep(settlement: StepSettlement): Promise<SettleStepResult>;
  /**
   * Adds a correction to an attempt of a settled Step. Adds the difference from the current figures to each counter in
   * dollars or tokens that the attempt was charged to. These are the counters of the latest holds, up to this attempt, that
   * were taken under the same decision. Writes nothing and returns false if the Step has a correction with this id, or if
   * the number of corrections of the attempt isn't `after`. Adds the difference to `usage` as well. Rejects with `step_not_found` if the organization has no such
   * Step, and `invalid_argument` if the Step is open, lacks the attempt, or the attempt was corrected 100 times.
   */
  correct(intent: CorrectionIntent): Promise<boolean>;
  /** Writes the decision on a refused request, and its leaf. */
  recordRefusal(refusal: Refusal): Promise<void>;
  /** Extends a process's lease and records the progress of its open Steps. The first call creates the lease. */
  renewLease(renewal: LeaseRenewal): Promise<void>;
  /**
   * Open Steps that no process will settle, in the order in which they opened: their process has no lease, its lease lapsed,
   * or it renewed its lease after the Step opened without naming the Step. Only reads: several processes may find the same Step, and `settleStep` lets one
   * of them recover it. At most `limit` at once, damaged ones included.
   */
  lapsedSteps(query: {
    readonly at: number;
    readonly clock: LeaseClock;
    readonly after: number | null;
    readonly limit: number;
  }): Promise<LapsedSteps>;

  readonly keys: KeyRepository;
  readonly connections: ConnectionRepository;
  readonly sessions: SessionRepository;
  readonly steps: StepRepository;
  readonly decisions: DecisionRepository;
  readonly budgets: BudgetRepository;
  readonly rateLimits: RateLimitRepository;
  readonly adminTokens: AdminTokenRepository;
  readonly evidence: EvidenceRepository;
  readonly checkpoints: CheckpointRepository;
  readonly responses: ResponseRepository;
  readonly usage: UsageRepository;
}
