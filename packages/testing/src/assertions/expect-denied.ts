import type { DecisionRecord, Gateway } from "@tollgate/core";
import { decisionOf } from "./decision-of.ts";
import { fail } from "./fail.ts";
import { inWords, readError } from "./read-error.ts";

/** What a test says of a decision; what it leaves out may be anything. */
export interface ExpectedDecision {
  /** The id of a rule that determined it. */
  readonly rule?: string;
  /** The reason that is told and recorded. */
  readonly reason?: string;
}

/**
 * Expects that the policy denied a request: 403 `policy_denied`, and a recorded decision by the rule and with the
 * reason that are named. Gives the decision.
 * @throws AssertionError saying what happened instead
 */
export async function expectDenied(
  gateway: Gateway,
  answer: Response,
  expected: ExpectedDecision = {},
): Promise<DecisionRecord> {
  const error = await readError(answer);
  if (answer.status !== 403 || error.code !== "policy_denied")
    fail(`The request should have been denied by policy, but was ${inWords(answer, error)}`, {
      actual: answer.status,
      expected: 403,
    });
  return expectDecision(await decisionOf(gateway, answer), "deny", expected);
}

/**
 * Expects that the policy permitted a request, by the rule that is named, and that the answer is no error. Gives the
 * decision, with its obligations.
 * @throws AssertionError saying what happened instead
 */
export async function expectPermitted(
  gateway: Gateway,
  answer: Response,
  expected: ExpectedDecision = {},
): Promise<DecisionRecord> {
  if (!answer.ok) {
    const error = await readError(answer);
    fail(`The request should have been permitted, but was ${inWords(answer, error)}`, {
      actual: answer.status,
      expected: 200,
    });
  }
  return expectDecision(await decisionOf(gateway, answer), "permit", expected);
}

function expectDecision(
  decision: DecisionRecord,
  effect: DecisionRecord["effect"],
  { rule, reason }: ExpectedDecision,
): DecisionRecord {
  if (decision.effect !== effect)
    fail(`The decision is ${decision.effect}.`, { actual: decision.effect, expected: effect });
  if (rule !== undefined && !decision.rules.includes(rule))
    fail(
      `The decision was determined by ${decision.rules.join(", ") || "no rule"}, not by ${rule}.`,
      {
        actual: decision.rules,
        expected: [rule],
      },
    );
  if (reason !== undefined && decision.reason !== reason)
    fail(`The decision's reason is ${JSON.stringify(decision.reason)}.`, {
      actual: decision.reason,
      expected: reason,
    });
  return decision;
}
