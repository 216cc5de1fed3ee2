import {
  type ActivityRecord,
  everyOrganization,
  type Gateway,
  type StepRecord,
} from "@tollgate/core";
import { decisionOf } from "./decision-of.ts";
import { fail } from "./fail.ts";

/**
 * Returns the Step of a request with its attempts, whatever its outcome. Null if the request opened no Step, because it
 * was denied or exceeded a budget.
 * @throws AssertionError if the answer has no policy decision
 */
export async function stepOf(gateway: Gateway, answer: Response): Promise<StepRecord | null> {
  const { id } = await decisionOf(gateway, answer);
  const steps = gateway.steps.list({ organizationId: everyOrganization, decision: id });
  return (await steps).data[0] ?? null;
}

/**
 * Returns the activity record of a request: model, tokens, cost in nanodollars, the key's label. Read a streamed answer
 * to its end first: the record is written then.
 * @throws AssertionError with the outcome if the request did not complete
 */
export async function activityOf(gateway: Gateway, answer: Response): Promise<ActivityRecord> {
  const { id } = await decisionOf(gateway, answer);
  const activity = gateway.activity.list({ organizationId: everyOrganization, decision: id });
  const record = (await activity).data[0];
  if (record) return record;
  const step = await stepOf(gateway, answer);
  if (step === null) fail("The request has no activity: it opened no Step.");
  const reason = step.reason === null ? "" : ` (${step.reason})`;
  fail(`The request has no activity: its Step is ${step.outcome}${reason}.`);
}
