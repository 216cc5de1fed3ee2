import type { EndpointName, Metadata, StepOutcome } from "../domain/step.ts";

/** `null` reads across organizations; a foreign organization's rows are never returned. */
export type Tenant = string | null;

/** All given fields must match; a list matches any of its values. Attempt fields match the last attempt. */
export interface StepQuery {
  readonly organizationId: Tenant;
  readonly userId?: readonly string[];
  readonly keyId?: readonly string[];
  readonly sessionId?: readonly string[];
  readonly turnId?: readonly string[];
  readonly source?: readonly string[];
  readonly endpoint?: readonly EndpointName[];
  readonly dataClass?: readonly string[];
  readonly decisionId?: readonly string[];
  readonly gateway?: readonly string[];
  readonly vendor?: readonly string[];
  /** In lower case, and compared with the model's name without regard to ASCII case. */
  readonly model?: readonly string[];
  readonly connection?: readonly string[];
  readonly host?: readonly string[];
  /** Pairs that must all be in the Step's metadata. */
  readonly metadata?: Metadata;
  /** `open` for Steps in flight. */
  readonly outcome?: readonly (StepOutcome | "open")[];
  /** Opened at or after, and before. */
  readonly from?: number;
  readonly to?: number;
}
