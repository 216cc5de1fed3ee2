import type { Caller } from "../domain/caller.ts";
import { formatModelId, parseModelId } from "../domain/model-id.ts";
import { standardTier } from "../domain/service-tier.ts";
import { GatewayError } from "../errors/gateway-error.ts";
import type { GatewayRequest } from "../http/gateway-request.ts";
import type { GatewayResponse } from "../http/gateway-response.ts";
import type { GatewayContext } from "../pipeline/context.ts";
import { isConnected } from "../pipeline/plan-attempt.ts";
import { decide } from "../policy/decide.ts";
import type { Aliases } from "../routing/route.ts";
import { classify } from "../sensitivity/classify.ts";
import { answerCaller, jsonHeaders, type RequestScope } from "./endpoint.ts";

/**
 * GET /v1/models: the models that the gateways list, limited to those that the organization can reach, the key may use and
 * the policy permits.
 */
export function listModels(scope: RequestScope, request: GatewayRequest): Promise<GatewayResponse> {
  const { context } = scope;
  return answerCaller(scope, request, async (caller) => {
    const listed = (await listedModels(context, caller)).filter((id) =>
      mayUse(context, caller, id),
    );
    const names = [
      ...(await virtualModels(context, caller)),
      ...(await usableAliases(context, caller)).keys(),
    ];
    const ids = [...listed, ...names];
    const list = isForMessages(request)
      ? {
          data: ids.map(modelInfo),
          first_id: ids[0] ?? null,
          last_id: ids.at(-1) ?? null,
          has_more: false,
        }
      : { object: "list", data: ids.map((name) => modelObject(context, caller, name)) };
    return { status: 200, headers: jsonHeaders(), body: JSON.stringify(list) };
  });
}

/** Whether the client speaks the Messages API, whose models have another form. */
function isForMessages({ headers }: GatewayRequest): boolean {
  return headers.get("anthropic-version") !== null;
}

/** A model in the form of the Messages API. Its dates, sizes and abilities are unknown, and its first date is the earliest. */
function modelInfo(id: string): object {
  return {
    type: "model",
    id,
    display_name: id,
    created_at: "1970-01-01T00:00:00Z",
    lifecycle: "active",
    deprecated_at: null,
    retires_at: null,
    line: null,
    capabilities: null,
    max_input_tokens: null,
    max_tokens: null,
  };
}

/** GET /v1/models/{id}: a model that can be called, even if it isn't listed. The slashes of the id may be escaped. */
export function getModel(
  scope: RequestScope,
  request: GatewayRequest,
  tail: string,
): Promise<GatewayResponse> {
  const { context } = scope;
  return answerCaller(scope, request, async (caller) => {
    const id = decoded(tail);
    if (id === null || !(await canCall(context, caller, id))) {
      throw new GatewayError(
        "model_not_found",
        "Model not found, or this API key isn't allowed to use it.",
        {
          param: "model",
        },
      );
    }
    const model = isForMessages(request) ? modelInfo(id) : modelObject(context, caller, id);
    return { status: 200, headers: jsonHeaders(), body: JSON.stringify(model) };
  });
}

/** A virtual model can be called if one of its targets can, and an alias if its model can. */
async function canCall(context: GatewayContext, caller: Caller, name: string): Promise<boolean> {
  const named = context.router.targetsOf(name, caller.aliases);
  if (named === null) return canUse(context, caller, name);
  for (const { route } of named.targets)
    if (await canUse(context, caller, formatModelId(route.model))) return true;
  return false;
}

async function canUse(context: GatewayContext, caller: Caller, id: string): Promise<boolean> {
  return (await canReach(context, caller, id)) && mayUse(context, caller, id);
}

/** The aliases that the caller can use. The others lead to models that it must not learn of. */
export async function usableAliases(context: GatewayContext, caller: Caller): Promise<Aliases> {
  const usable = new Map(context.router.aliasesOf(caller.aliases));
  for (const name of usable.keys())
    if (!(await canCall(context, caller, name))) usable.delete(name);
  return usable;
}

async function virtualModels(context: GatewayContext, caller: Caller): Promise<readonly string[]> {
  const ids: string[] = [];
  for (const { id } of context.router.virtualModels)
    if (await canCall(context, caller, id)) ids.push(id);
  return ids;
}

async function canReach(context: GatewayContext, caller: Caller, id: string): Promise<boolean> {
  const route = context.router.find(id);
  if (route === null) return false;
  const { connection, model } = route;
  return isConnected(context, caller, { gateway: model.gateway, connection });
}

/** The models of the gateways that the caller can reach. */
async function listedModels(context: GatewayContext, caller: Caller): Promise<readonly string[]> {
  const ofEach = [...context.providers].map(async ([gateway, provider]) =>
    (await isConnected(context, caller, { gateway, connection: provider.connection }))
      ? context.modelLists.of(gateway, provider)
      : [],
  );
  return (await Promise.all(ofEach)).flat();
}

const noHeader = { name: "", value: null };

/** Asks the policy about a plain call, and one for embeddings, at the key's default class. Records nothing. */
function mayUse(context: GatewayContext, caller: Caller, id: string): boolean {
  const route = context.router.find(id);
  if (!route) return false;
  const facts = {
    organization: caller.organizationId,
    user: caller.userId,
    key: caller.keyId,
    source: caller.source,
    dataClass: classify(noHeader, caller, {
      dataClasses: context.dataClasses,
      referred: null,
      session: null,
    }),
    ...route.model,
    listed: route.listed,
    connection: route.connection,
    tools: false,
    images: false,
    structuredOutput: false,
    serviceTier: standardTier,
    estimatedInputTokens: 0,
    estimatedOutputTokens: 0,
    estimatedCostNanoUsd: 0,
  };
  const { allowlists } = caller;
  const { policy, dataClasses } = context;
  return [facts, { ...facts, embeddings: true } as const].some(
    (asked) => decide(policy, asked, { allowlists, dataClasses }).effect === "permit",
  );
}

function modelObject({ router }: GatewayContext, { aliases }: Caller, name: string): object {
  const id = router.idBehind(name, aliases) ?? name;
  return { id: name, object: "model", created: 0, owned_by: parseModelId(id)?.vendor ?? "" };
}

/** Null for an escape that can't be read. */
function decoded(text: string): string | null {
  try {
    return decodeURIComponent(text);
  } catch {
    return null;
  }
}
