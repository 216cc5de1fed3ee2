import { type DecisionRecord, everyOrganization, type Gateway } from "@tollgate/core";
import { fail } from "./fail.ts";
import { inWords, readError } from "./read-error.ts";

const header = /^.+-policy-decision-id$/;

/**
 * The recorded policy decision of one request, by the header of its answer, whatever the header's prefix: its effect,
 * the rules that determined it, their reason, and the facts they saw.
 * @throws AssertionError for an answer that never got as far as a decision, such as a 401
 */
export async function decisionOf(gateway: Gateway, answer: Response): Promise<DecisionRecord> {
  const id = [...answer.headers].find(([name]) => header.test(name))?.[1];
  if (id === undefined)
    fail(
      `The request got as far as no policy decision: it was ${inWords(answer, await readError(answer))}`,
    );
  return gateway.decisions.get({ organizationId: everyOrganization, id });
}
