import type { GatewayError } from "../errors/gateway-error.ts";
import { connectionRequired, routeOf } from "../routing/route.ts";
import { classify } from "../sensitivity/classify.ts";
import { chainOf } from "../sessions/transcript-chain.ts";
import { answerOf } from "./answer.ts";
import { type Candidate, type Decided, decideOn, planAttempt, refusalOf } from "./candidate.ts";
import type { GovernedAnswer, GovernedCall } from "./governed-call.ts";
import type { Line } from "./line.ts";
import { requireOwned } from "./named-ids.ts";
import { openStep } from "./open-step.ts";
import { policyDenied, priceUnknown, refuse } from "./refuse.ts";
import { withDecision } from "./with-decision.ts";

/**
 * The governed path of every model call: classify, route, decide, open the Step, ask the provider, settle, answer.
 * Nothing is sent to a provider before the Step is durable, and nothing complete is released before its settlement is.
 */
export async function execute(line: Line, call: GovernedCall): Promise<GovernedAnswer> {
  const header = { name: line.headerNames.dataSensitivity, value: call.dataClass };
  const dataClass = classify(header, call.caller, {
    dataClasses: line.dataClasses,
    referred: null,
  });
  const route = routeOf(call.model, line.providers);
  if (route.connection === "customer") throw connectionRequired();
  await requireOwned(line.store, call);
  const decided = decideOn(line, call, { route, dataClass, first: null });
  try {
    const candidate = await permitted(line, call, decided);
    const chain = chainOf(call.request.messages, call.caller.salt);
    const opened = await openStep(line, call, { candidate, chain });
    return answerOf(line, call, opened);
  } catch (thrown) {
    throw withDecision(thrown, line.headerNames, { dataClass, decisionId: decided.decision.id });
  }
}

async function permitted(line: Line, call: GovernedCall, decided: Decided): Promise<Candidate> {
  const refusal = refusalOf(decided);
  const candidate = refusal === null ? await planAttempt(line, call, { decided, number: 1 }) : null;
  if (candidate) return candidate;
  const { decision } = decided;
  throw await refuse(line, call.caller, { decision, error: errorFor(refusal, decided) });
}

function errorFor(refusal: ReturnType<typeof refusalOf>, { decision }: Decided): GatewayError {
  switch (refusal) {
    case "policy_denied":
      return policyDenied(decision);
    case "connection_required":
      return connectionRequired();
    case null:
      return priceUnknown();
  }
}
