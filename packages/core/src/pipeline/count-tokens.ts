import type { Caller } from "../domain/caller.ts";
import { orTimeout } from "../kernel/bounded-wait.ts";
import type { Ticket } from "../limits/admission.ts";
import { connectionRequired, type ModelRoute } from "../routing/route.ts";
import { classify } from "../sensitivity/classify.ts";
import type { GatewayContext } from "./context.ts";
import { withClientState } from "./conversation.ts";
import { withDecision } from "./decision-headers.ts";
import type { GovernedCall } from "./governed-call.ts";
import { meet } from "./obligations.ts";
import { policyDenied, recordDecisions } from "./open-step.ts";
import { decideRoute, isConnected, type RoutedDecision } from "./plan-attempt.ts";

/** The input tokens of a request, and where the number comes from. */
export interface CountedTokens {
  readonly tokens: number;
  readonly from: "provider" | "estimate";
  readonly dataClass: string;
  /** The recorded decision; null if nothing was sent. */
  readonly decisionId: string | null;
}

/** How long a provider may take to count. After that, the gateway estimates. */
const maxWaitMs = 10_000;

/**
 * Counts the input tokens of a request without asking the model. It opens no Step, but the policy decides as for a call,
 * because the provider gets the request's content: the decision is recorded before anything is sent. Where the provider
 * can't count, or whether the policy permits it depends on more than the request, the gateway estimates.
 */
export async function countTokens(
  context: GatewayContext,
  call: GovernedCall,
  room: Pick<Ticket, "grow">,
): Promise<CountedTokens> {
  const { caller, model } = call;
  const { dataClasses, headerNames } = context;
  const header = { name: headerNames.dataSensitivity, value: call.dataClass };
  const dataClass = classify(header, caller, { dataClasses, referred: null, session: null });
  const named = context.router.targetsOf(model, caller.aliases);
  const route = named?.targets[0]?.route ?? context.router.require(model, caller.aliases);
  const { connection } = route;
  if (!(await isConnected(context, caller, { gateway: route.model.gateway, connection })))
    throw connectionRequired();
  const current = withClientState(call, await call.prepare(room));
  const routed = decideRoute(context, current, { route, dataClass, first: null });
  const { decision, inputTokens } = routed;
  if (decision.effect === "deny") {
    const error = policyDenied(decision);
    await recordDecisions(context, caller, [{ decision, refusal: null }]);
    throw withDecision(error, headerNames, { dataClass, decisionId: decision.id });
  }
  const isDecided = context.policy.sessions === "ignore" && meet.connection(decision, connection);
  if (!isDecided || route.provider.countTokens === undefined)
    return { tokens: inputTokens, from: "estimate", dataClass, decisionId: null };
  await recordDecisions(context, caller, [{ decision, refusal: null }]);
  const counted = await countedBy(context, caller, route, routed);
  return {
    tokens: counted ?? inputTokens,
    from: counted === null ? "estimate" : "provider",
    dataClass,
    decisionId: decision.id,
  };
}

/** The provider's count; null if it fails. */
async function countedBy(
  { clock, credentials, limits }: GatewayContext,
  { organizationId }: Caller,
  { provider, connection, model, upstreamName }: ModelRoute,
  { request }: RoutedDecision,
): Promise<number | null> {
  const owner = { organizationId, gateway: model.gateway };
  const controller = new AbortController();
  try {
    const credential =
      connection === "platform" ? null : await credentials.open(owner, { fresh: false });
    const tokens = await orTimeout(clock, maxWaitMs, async () =>
      provider.countTokens?.({
        model: `${model.vendor}/${model.model}`,
        upstreamName,
        request,
        credential,
        signal: controller.signal,
        limits: {
          eventBytes: limits.upstreamEventBytes,
          totalBytes: limits.upstreamBytes,
          bodyBytes: limits.upstreamEventBytes,
        },
      }),
    );
    return Number.isSafeInteger(tokens) && tokens !== undefined && tokens >= 0 ? tokens : null;
  } catch {
    // An estimate answers the client too.
    return null;
  } finally {
    controller.abort();
  }
}
