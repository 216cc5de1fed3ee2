import type { DecisionRefusal } from "../domain/policy-decision.ts";
import type { GatewayError } from "../errors/gateway-error.ts";
import { connectionRequired, type Route } from "../routing/route.ts";
import { classify } from "../sensitivity/classify.ts";
import { chainOf } from "../sessions/transcript-chain.ts";
import { answerOf } from "./answer.ts";
import {
  type Candidate,
  type Decided,
  decideOn,
  lacksAccount,
  planAttempt,
  sessionClassOf,
} from "./candidate.ts";
import { withClientState, withSession } from "./conversation-state.ts";
import { evidenceUnavailable } from "./durable.ts";
import type { GovernedAnswer, GovernedCall, PreparedCall } from "./governed-call.ts";
import { isConnected } from "./is-connected.ts";
import type { Line } from "./line.ts";
import { requireOwned } from "./named-ids.ts";
import { KeyChanged, openStep, SessionChanged } from "./open-step.ts";
import { policyDenied, priceUnknown, refuse, refusedByPrice } from "./refuse.ts";
import { withDecision } from "./with-decision.ts";

/**
 * The governed path of every model call: classify, route, decide, open the Step, ask the provider, settle, answer.
 * Nothing is sent to a provider before the Step is durable, and nothing complete is released before its settlement is.
 */
export async function execute(line: Line, call: GovernedCall): Promise<GovernedAnswer> {
  classifyCall(line, call, { referred: null, session: null });
  const route = line.router.require(call.model);
  if (route.connection === "customer") await requireConnection(line, call, route);
  await requireOwned(line.store, call);
  const prepared = withClientState(call, await call.prepare());
  for (let round = 1; ; round++) {
    const current = await withSession(line, prepared, route);
    try {
      return await governed(line, current, route);
    } catch (thrown) {
      if (!(thrown instanceof SessionChanged)) throw thrown;
      if (round === mostRounds) throw evidenceUnavailable(thrown);
    }
  }
}

/** How often another Session than the one that was read may be the one to go on with. */
const mostRounds = 5;

async function governed(line: Line, call: PreparedCall, route: Route): Promise<GovernedAnswer> {
  const dataClass = classifyCall(line, call, {
    referred: call.referredClass,
    session: line.policy.sessions === "raise" ? sessionClassOf(line, call) : null,
  });
  const decided = decideOn(line, call, { route, dataClass, first: null });
  try {
    const candidate = await permitted(line, call, decided);
    const { continued } = call.state;
    const chain = continued?.chain ?? (await chainOf(call.transcript, call.caller.salt));
    const opened = await openStep(line, call, { candidate, chain });
    return answerOf(line, call, opened);
  } catch (thrown) {
    if (thrown instanceof KeyChanged || thrown instanceof SessionChanged) throw thrown;
    throw withDecision(thrown, line.headerNames, {
      dataClass,
      decisionId: decided.decision.id,
    });
  }
}

async function requireConnection(
  line: Line,
  { caller }: GovernedCall,
  { model: { gateway }, connection }: Route,
): Promise<void> {
  if (!(await isConnected(line, caller, { gateway, connection }))) throw connectionRequired();
}

async function permitted(line: Line, call: PreparedCall, decided: Decided): Promise<Candidate> {
  const { decision } = decided;
  const refused = (refusal: DecisionRefusal | null, error: GatewayError) =>
    refuse(line, call.caller, { decision, refusal, error });
  if (decision.effect === "deny") throw await refused(null, policyDenied(decision));
  // Before any budget: what the route cannot meet does not depend on what is left.
  if (lacksAccount(decided)) throw await refused({ by: "connection" }, connectionRequired());
  const candidate = await planAttempt(line, call, { decided, number: 1 });
  if (candidate === null) throw await refused(refusedByPrice(decided), priceUnknown(decided));
  return candidate;
}

function classifyCall(
  line: Line,
  call: GovernedCall,
  floors: { readonly referred: string | null; readonly session: string | null },
): string {
  const header = { name: line.headerNames.dataSensitivity, value: call.dataClass };
  return classify(header, call.caller, { dataClasses: line.dataClasses, ...floors });
}
