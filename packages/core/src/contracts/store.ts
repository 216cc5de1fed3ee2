import type { KeyRepository } from "./key-repository.ts";
import type {
  BudgetRepository,
  ConnectionRepository,
  DecisionRepository,
  EvidenceRepository,
  RateLimitRepository,
  ResponseRepository,
  SessionRepository,
  StepRepository,
} from "./repositories.ts";
import type {
  AttemptIntent,
  CorrectionIntent,
  LapsedStep,
  LeaseClock,
  LeaseRenewal,
  OpenAttemptResult,
  OpenStepResult,
  Refusal,
  SettleStepResult,
  StepIntent,
  StepSettlement,
} from "./step-verbs.ts";

/**
 * Persists everything Tollgate governs. Every method is required; there are no capability flags.
 *
 * The verbs are atomic and durable: when the promise resolves, all of the change is on disk, or the verb refused and
 * nothing is. When it rejects, the outcome is unknown, and calling again with the same ids must be safe.
 * Every time is milliseconds since the epoch on the gateway's clock, but for leases (see LeaseClock); every amount is a
 * safe integer.
 * Content and evidence are bytes, and are read back exactly as written.
 * The lock order is one everywhere: Step, Session, response, budgets by (budgetId, subject, periodStart).
 */
export interface Store {
  readonly contract: 1;
  /**
   * Creates or upgrades what the store keeps. Safe on every start, from any number of processes. `check` changes
   * nothing, and rejects where there is something to create or to upgrade. Default `auto`.
   */
  migrate(mode?: "auto" | "check"): Promise<void>;
  /** Finishes queued work and closes everything that the store opened. Safe to call twice. */
  close(): Promise<void>;

  /**
   * Assigns Session and Turn, appends the request's new messages, takes the holds (all or none), and writes the
   * decision, the Step, its first attempt and the leaf. Refuses without writing anything.
   */
  openStep(intent: StepIntent): Promise<OpenStepResult>;
  /**
   * Ends the Step's running attempt and opens its next one, releasing the old attempt's holds and taking new ones.
   * Rejects with `step_not_found` for no Step of the organization, `invalid_argument` for an attempt that does not run.
   */
  openAttempt(intent: AttemptIntent): Promise<OpenAttemptResult>;
  /**
   * Writes how a Step ended: reply, attempts, charges against its holds, and the leaf. A Step is settled once:
   * later settlements change nothing, and their result says so. Rejects as `openAttempt` does.
   */
  settleStep(settlement: StepSettlement): Promise<SettleStepResult>;
  /**
   * Adds a correction to an attempt of a settled Step. Adjusts, by the difference to the current figures, the settled
   * amount of every counter in dollars or tokens that the attempt was charged to: those of the latest holds up to it
   * that were taken for an attempt of its decision. False, and nothing written, when the Step has a correction of this
   * id, or the attempt another number of them than `after` says. Rejects with `step_not_found` for no Step of the organization, `invalid_argument` for an open Step, an attempt
   * it does not have, or one corrected 100 times.
   */
  correct(intent: CorrectionIntent): Promise<boolean>;
  /** Writes a decision that let nothing happen, and its leaf. */
  recordRefusal(refusal: Refusal): Promise<void>;
  /** Extends a process's lease and records the progress of its open Steps. The first call creates the lease. */
  renewLease(renewal: LeaseRenewal): Promise<void>;
  /**
   * Open Steps that no process will settle: their process's lease lapsed, it has none, or it renewed its lease after
   * the Step opened without naming the Step. Reads only; `settleStep` decides who recovers.
   */
  lapsedSteps(query: {
    readonly at: number;
    readonly clock: LeaseClock;
    readonly limit: number;
  }): Promise<readonly LapsedStep[]>;

  readonly keys: KeyRepository;
  readonly connections: ConnectionRepository;
  readonly sessions: SessionRepository;
  readonly steps: StepRepository;
  readonly decisions: DecisionRepository;
  readonly budgets: BudgetRepository;
  readonly rateLimits: RateLimitRepository;
  readonly evidence: EvidenceRepository;
  readonly responses: ResponseRepository;
}
