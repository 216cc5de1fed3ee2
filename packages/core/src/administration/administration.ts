import type { GatewayStatus } from "../pipeline/health.ts";
import type { Activity } from "./activity.ts";
import type { AdminTokens } from "./admin-tokens.ts";
import type { Budgets } from "./budgets.ts";
import type { Changes } from "./changes.ts";
import type { Configured } from "./configured.ts";
import type { Connections } from "./connections.ts";
import type { Decisions } from "./decisions.ts";
import type { Keys } from "./keys.ts";
import type { RateLimits } from "./rate-limits.ts";
import type { Sessions } from "./sessions.ts";
import type { Steps } from "./steps.ts";
import type { UsageReconciliation, UsageReconciliationOptions } from "./usage-reconciliation.ts";

/** Everything that operators administer and read. A gateway has it in process, and the admin API over HTTP. */
export interface Administration extends Configured {
  readonly keys: Keys;
  readonly connections: Connections;
  readonly budgets: Budgets;
  readonly rateLimits: RateLimits;
  readonly adminTokens: AdminTokens;
  readonly activity: Activity;
  readonly steps: Steps;
  readonly sessions: Sessions;
  readonly decisions: Decisions;
  readonly changes: Changes;
  /** How busy this process is now. A client of the admin API asks the process that answers. */
  status(): GatewayStatus | Promise<GatewayStatus>;
  /** Settles the Steps of dead processes and returns their number. Runs automatically while the gateway is open. */
  recover(): Promise<number>;
  /**
   * Removes stored responses and Steps, and erases transcripts, that are older than `retention` allows, in bounded chunks.
   * Returns the number of records affected. Runs automatically while the gateway is open. Several processes can run it at
   * once.
   */
  sweep(): Promise<number>;
  /**
   * Adds up the Steps of a range again and compares them with the hourly sums that summaries read. Changes nothing without
   * `repair`. Default: the last 30 days, or as far back as `retention.activity` keeps Steps.
   * @throws GatewayError `invalid_argument` for an invalid range
   */
  reconcileUsage(options: UsageReconciliationOptions): Promise<UsageReconciliation>;
}
