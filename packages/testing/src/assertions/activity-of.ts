import {
  type ActivityRecord,
  everyOrganization,
  type Gateway,
  type StepRecord,
} from "@tollgate/core";
import { decisionOf } from "./decision-of.ts";
import { fail } from "./fail.ts";

/**
 * The Step of one request, whatever its end, with its attempts. Null for a request that opened none: a denied one, or
 * one beyond a budget.
 * @throws AssertionError for an answer that never got as far as a decision
 */
export async function stepOf(gateway: Gateway, answer: Response): Promise<StepRecord | null> {
  const { id } = await decisionOf(gateway, answer);
  const steps = gateway.steps.list({ organizationId: everyOrganization, decision: id });
  return (await steps).data[0] ?? null;
}

/**
 * The activity record of one request: model, tokens, cost in nanodollars, the key's label. The answer to a streamed
 * request must have been read to its end: before that there is no record.
 * @throws AssertionError for a request that did not complete, with how it ended
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
