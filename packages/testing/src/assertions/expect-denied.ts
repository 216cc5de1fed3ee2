import type { DecisionRecord, Gateway } from "@tollgate/core";
import { decisionOf } from "./decision-of.ts";
import { fail } from "./fail.ts";
import { inWords, readError } from "./read-error.ts";

/** The expected decision. Omitted members may have any value. */
export interface ExpectedDecision {
  /** The id of a rule that determined it. */
  readonly rule?: string;
  /** The reason in the answer and in the record. */
  readonly reason?: string;
}

/**
 * Expects that the policy denied a request: 403 `policy_denied`, with a recorded decision by the expected rule and with
 * the expected reason. Returns the decision.
 * @throws AssertionError with the actual answer
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
 * Expects that the policy permitted a request by the expected rule, and that the answer is not an error. Returns the
 * decision with its obligations.
 * @throws AssertionError with the actual answer
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
