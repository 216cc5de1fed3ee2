import { type DecisionRecord, everyOrganization, type Gateway } from "@tollgate/core";
import { fail } from "./fail.ts";
import { inWords, readError } from "./read-error.ts";

const header = /^.+-policy-decision-id$/;

/**
 * Returns the recorded policy decision of a request, by the header of its answer (with any prefix): its effect, the
 * rules that determined it, their reason, and the facts.
 * @throws AssertionError if the answer has no decision, such as a 401
 */
export async function decisionOf(gateway: Gateway, answer: Response): Promise<DecisionRecord> {
  const id = [...answer.headers].find(([name]) => header.test(name))?.[1];
  if (id === undefined)
    fail(`The request has no policy decision: it was ${inWords(answer, await readError(answer))}`);
  return gateway.decisions.get({ organizationId: everyOrganization, id });
}
