import type { Caller } from "../domain/caller.ts";
import { highestClass } from "../domain/data-class.ts";
import { formatModelId } from "../domain/model-id.ts";
import type { DecisionRefusal } from "../domain/policy-decision.ts";
import type { GatewayError } from "../errors/gateway-error.ts";
import { answerNotKept } from "../idempotency/claim.ts";
import type { Ticket } from "../limits/admission.ts";
import { connectionRequired, type ModelRoute, type TargetRoute } from "../routing/route.ts";
import { classify } from "../sensitivity/classify.ts";
import { chainOf, type TranscriptChain } from "../sessions/transcript-chain.ts";
import { selectTarget } from "./choose-target.ts";
import type { GatewayContext } from "./context.ts";
import {
  requireOwned,
  retriedStep,
  withClientState,
  withInstructionsApart,
  withSession,
} from "./conversation.ts";
import { DecidedError, withDecision } from "./decision-headers.ts";
import { requireEmbeddings } from "./embedding.ts";
import type {
  GovernedAnswer,
  GovernedCall,
  PreparedCall,
  ReplayedAnswer,
} from "./governed-call.ts";
import { meet } from "./obligations.ts";
import {
  CallRefused,
  KeyChanged,
  openStep,
  policyDenied,
  priceUnknown,
  type Refused,
  recordDecisions,
  refusedByPrice,
  SessionChanged,
} from "./open-step.ts";
import {
  decideRoute,
  isConnected,
  type PlannedAttempt,
  planAttempt,
  type RoutedDecision,
  sessionClassOf,
} from "./plan-attempt.ts";
import { startStep } from "./step-run.ts";
import { evidenceUnavailable } from "./store-calls.ts";

/**
 * The line: the path of every model call. Classifies, routes, decides, opens the Step, and returns an answer that asks the
 * provider and settles. Sends nothing to a provider before the Step is durable, and completes no answer before its
 * settlement is. A request that repeats another gets that one's answer. Most steps return a promise only if they have to
 * read something, so a call rarely waits.
 */
export async function execute(
  context: GatewayContext,
  call: GovernedCall,
  ticket: Ticket,
): Promise<GovernedAnswer | ReplayedAnswer> {
  const requestedClass = classifyCall(context, call, { referred: null, session: null });
  const { aliases } = call.caller;
  const named = context.router.targetsOf(call.model, aliases);
  const route = named?.targets[0]?.route ?? context.router.require(call.model, aliases);
  if (call.endpoint === "embeddings") requireEmbeddings(route, named);
  if (named === null) {
    const connected = isConnected(context, call.caller, connectionOf(route));
    if (!(connected instanceof Promise ? await connected : connected)) throw connectionRequired();
  }
  if (call.sessionId !== null || call.turnId !== null) await requireOwned(context.store, call);
  const preparing = call.prepare(ticket);
  const prepared = preparing instanceof Promise ? await preparing : preparing;
  const initial = withClientState(
    call,
    isSystemApart(context, call.caller) ? withInstructionsApart(prepared) : prepared,
  );
  for (let round = 1; ; round++) {
    const finding = withSession(context, initial, named ?? route.stateNeeds);
    const found = finding instanceof Promise ? await finding : finding;
    const dataClass = raisedClass(context, found, requestedClass);
    const current = named === null ? found : withTargets(context, found, named);
    const { selection } = current;
    let first: CallRefused | null = null;
    let pending: readonly Refused[] = [];
    for (let place = 0; ; place++) {
      const routed = decideRoute(context, current, {
        route: selection?.targets[place]?.route ?? route,
        dataClass,
        first: first?.refused.decision ?? null,
      });
      try {
        const planning = permitted(context, current, routed);
        const planned = planning instanceof Promise ? await planning : planning;
        const { continued } = current.state;
        const { transcript, caller, known } = current;
        const chaining =
          current.embedding === undefined
            ? (continued?.chain ?? chainOf(transcript, caller.salt, known?.chain))
            : null;
        const chain = chaining instanceof Promise ? await chaining : chaining;
        const retryOf =
          call.isRetry && chain !== null ? await retriedStep(context, current, chain) : null;
        if (pending.length > 0) await recordDecisions(context, caller, pending);
        pending = [];
        const opened = await openStep(context, current, { planned, chain, retryOf });
        if ("replayed" in opened) return await permittedReplay(context, current, opened, routed);
        if (chain !== null) rememberConversation(current, routed, chain);
        return startStep(context, current, opened, ticket);
      } catch (thrown) {
        if (thrown instanceof SessionChanged && round < maxRounds) break;
        if (!(thrown instanceof CallRefused)) throw answered(context, call, routed, thrown);
        first ??= thrown;
        pending = [...pending, thrown.refused];
        if (place + 1 >= (selection?.targets.length ?? 1))
          throw answered(context, call, routed, await recorded(context, call, { first, pending }));
        const { decision, refusal } = thrown.refused;
        selection?.passOver(
          formatModelId(routed.route.model),
          refusal?.by ?? "policy",
          decision.id,
        );
      }
    }
  }
}

/**
 * Checks that the policy still permits the answer that a repeat would get: of the model that answered, in the higher
 * class of the two requests, with a transcript. A denial is recorded.
 */
async function permittedReplay(
  context: GatewayContext,
  call: PreparedCall,
  answer: ReplayedAnswer,
  current: RoutedDecision,
): Promise<ReplayedAnswer> {
  const { stepId, decisionId, replayed } = answer;
  const classes = [answer.dataClass, current.dataClass];
  const dataClass = highestClass(context.dataClasses, classes) ?? current.dataClass;
  const isSame =
    replayed.model === formatModelId(current.route.model) && dataClass === current.dataClass;
  const route = isSame ? current.route : context.router.find(replayed.model);
  const routed =
    isSame || route === null
      ? current
      : decideRoute(context, call, { route, dataClass, first: null });
  const { decision } = routed;
  const refused = refusedByDecision(routed);
  if (refused !== null) {
    const first = new CallRefused({ decision, ...refused });
    const pending = [first.refused];
    throw answered(context, call, routed, await recorded(context, call, { first, pending }));
  }
  const decisions = [decision, current.decision];
  if (route !== null && decisions.every((one) => meet.transcript(one) === "full")) return answer;
  throw withDecision(answerNotKept(), context.headerNames, { dataClass, decisionId, stepId });
}

/** Records refusals. Returns what the caller gets: the first of all, or the error of a store that can't record. */
async function recorded(
  context: GatewayContext,
  { caller }: GovernedCall,
  { first, pending }: { readonly first: CallRefused; readonly pending: readonly Refused[] },
): Promise<unknown> {
  try {
    await recordDecisions(context, caller, pending);
    return first;
  } catch (thrown) {
    return thrown;
  }
}

/** The error for the caller, with the headers of its decision. Notifies observers of a refusal. */
function answered(
  context: GatewayContext,
  call: GovernedCall,
  { dataClass, decision }: RoutedDecision,
  thrown: unknown,
): unknown {
  if (thrown instanceof KeyChanged || thrown instanceof DecidedError) return thrown;
  if (thrown instanceof SessionChanged) return evidenceUnavailable(thrown);
  if (!(thrown instanceof CallRefused))
    return withDecision(thrown, context.headerNames, { dataClass, decisionId: decision.id });
  const { decision: refused, refusal, error } = thrown.refused;
  const { id: decisionId, at, facts } = refused;
  context.notify({
    type: "request.denied",
    at,
    requestId: call.requestId,
    organizationId: call.caller.organizationId,
    userId: call.caller.userId,
    keyId: call.caller.keyId,
    source: facts.source,
    model: formatModelId(facts),
    dataClass: facts.dataClass,
    decisionId,
    rules: refused.rules,
    code: error.code,
    refusal,
  });
  return withDecision(error, context.headerNames, { dataClass, decisionId });
}

/** The call with its targets in the order of choice. */
function withTargets(
  context: GatewayContext,
  call: PreparedCall,
  named: TargetRoute,
): PreparedCall {
  const sessionId = call.state.continued?.session?.sessionId ?? null;
  const { model: requested, stream } = call;
  const { organizationId } = call.caller;
  const choosing = { requested, organizationId, stream, sessionId };
  return { ...call, selection: selectTarget(context, named, choosing) };
}

/** How often a call may start over because it would continue a different Session than the one it read. */
const maxRounds = 5;

/** Remembers the conversation for its next request. The texts of its messages are stored by now. */
function rememberConversation(
  call: PreparedCall,
  { request: { messages }, size }: RoutedDecision,
  { messages: _, ...chain }: TranscriptChain,
): void {
  const isSentWhole = messages === call.request.messages;
  call.remember?.({ chain, sent: isSentWhole ? { messages, size } : null });
}

/**
 * The class of the header or the key. The content that the request refers to may raise it, and so may its Session if the
 * policy says so.
 */
function raisedClass(context: GatewayContext, call: PreparedCall, requestedClass: string): string {
  const referred = call.referredClass;
  const session = context.policy.sessions === "raise" ? sessionClassOf(context, call) : null;
  return referred === null && session === null
    ? requestedClass
    : classifyCall(context, call, { referred, session });
}

function isSystemApart({ leadingSystem }: GatewayContext, caller: Caller): boolean {
  return (caller.leadingSystem ?? leadingSystem) === "apart";
}

/** Plans the permitted attempt. Throws or rejects with CallRefused, which isn't recorded yet, if there is none. */
function permitted(
  context: GatewayContext,
  call: PreparedCall,
  routed: RoutedDecision,
): PlannedAttempt | Promise<PlannedAttempt> {
  const { decision } = routed;
  const refused = (refusal: DecisionRefusal | null, error: GatewayError): never => {
    throw new CallRefused({ decision, refusal, error });
  };
  const early = refusedByDecision(routed);
  if (early !== null) return refused(early.refusal, early.error);
  const priced = (planned: PlannedAttempt | null): PlannedAttempt | Promise<PlannedAttempt> =>
    planned ?? refused(refusedByPrice(routed), priceUnknown(routed));
  const plan = (isReached: boolean): PlannedAttempt | Promise<PlannedAttempt> => {
    if (!isReached) return refused({ by: "connection" }, connectionRequired());
    const planning = planAttempt(context, call, { routed, number: 1 });
    return planning instanceof Promise ? planning.then(priced) : priced(planning);
  };
  // Without a selection, the connection was checked before anything was decided.
  if (call.selection === undefined) return plan(true);
  const connected = isConnected(context, call.caller, connectionOf(routed.route));
  return connected instanceof Promise ? connected.then(plan) : plan(connected);
}

/** How the decision alone refuses the call; null if it doesn't. */
function refusedByDecision({ decision, route }: RoutedDecision): {
  readonly refusal: DecisionRefusal | null;
  readonly error: GatewayError;
} | null {
  if (decision.effect === "deny") return { refusal: null, error: policyDenied(decision) };
  // Comes before any budget: a missing account doesn't depend on the money left.
  return meet.connection(decision, route.connection)
    ? null
    : { refusal: { by: "connection" }, error: connectionRequired() };
}

function connectionOf({ model, connection }: ModelRoute) {
  return { gateway: model.gateway, connection };
}

function classifyCall(
  context: GatewayContext,
  call: Pick<GovernedCall, "caller" | "dataClass">,
  floors: { readonly referred: string | null; readonly session: string | null },
): string {
  const header = { name: context.headerNames.dataSensitivity, value: call.dataClass };
  return classify(header, call.caller, { dataClasses: context.dataClasses, ...floors });
}
