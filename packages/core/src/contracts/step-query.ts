import type { EndpointName, Metadata, StepOutcome } from "../domain/step.ts";

/** The organization to read, and no other; null reads all of them. */
export type Tenant = string | null;

/** All given fields must match, and a list matches any of its values. Fields of an attempt apply to the last attempt. */
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
  /** In lower case. The comparison ignores the ASCII case of the model's name. */
  readonly model?: readonly string[];
  readonly connection?: readonly string[];
  readonly host?: readonly string[];
  /** Pairs that must all be in the Step's metadata. */
  readonly metadata?: Metadata;
  /** `open` for Steps in flight. */
  readonly outcome?: readonly (StepOutcome | "open")[];
  /** Opened at or after `from`, and before `to`. */
  readonly from?: number;
  readonly to?: number;
}
