import type {
  CompletionRequest,
  FunctionTool,
  ResponseFormat,
} from "../../domain/completion-request.ts";
import type { Limits } from "../../domain/limits.ts";
import type { DroppedFields } from "../../domain/step.ts";
import { requestMembers } from "../common-fields.ts";
import { type BodyOptions, beginReading } from "../dropped-fields.ts";
import { wrongValue } from "../read.ts";
import { toolUse } from "../tools.ts";
import { echoOf, type ResponseEcho } from "./echo.ts";
import type { InputItem } from "./items.ts";
import { flattenTools, type Namespaces } from "./namespaces.ts";
import { includedLogprobs, responseRequest } from "./schema.ts";

/** A call of the Responses endpoint: the request to the model, the response it continues, and the echo of the answer. */
export interface ResponseCall {
  readonly model: string;
  readonly stream: boolean;
  readonly sessionId: string | null;
  readonly turnId: string | null;
  readonly store: boolean;
  readonly previousResponseId: string | null;
  readonly instructions: string | null;
  /** Whether the answer includes its sealed state, so it can be continued without being stored. */
  readonly includesState: boolean;
  readonly input: readonly InputItem[];
  readonly options: Omit<CompletionRequest, "messages">;
  /** The functions in the client's namespaces, by the names that the model knows. */
  readonly namespaces: Namespaces;
  readonly echo: ResponseEcho;
  /** Members dropped from its input and tools, and those dropped from its input alone. */
  readonly droppedFields: DroppedFields;
  readonly droppedFromInput: DroppedFields;
}

/**
 * Reads a parsed body (section 2.5) into a new call. Null members become absent. The call shares no objects with the body
 * except JSON Schemas and provider state.
 * @throws GatewayError with the code and the path of the first fault, in the order of the schema
 */
export function parseResponse(
  body: unknown,
  limits: Limits,
  options: BodyOptions = {},
): ResponseCall {
  const { reading, dropped } = beginReading(limits, options);
  const given = responseRequest(body, "", reading);
  const { instructions = null, previousResponseId = null, store = true } = given;
  requireContent(given.input, previousResponseId);
  const { tools, namespaces } = flattenTools(given.tools ?? [], limits);
  const asked = optionsOf(given, tools, store);
  return {
    model: given.model,
    stream: given.stream ?? false,
    sessionId: given.sessionId ?? null,
    turnId: given.turnId ?? null,
    store,
    previousResponseId,
    instructions,
    includesState: given.include?.includes("reasoning.encrypted_content") ?? false,
    input: given.input,
    options: asked,
    namespaces,
    echo: echoOf(asked, {
      instructions,
      tools: given.tools ?? [],
      parallelToolCalls: given.parallelToolCalls,
      toolChoice: given.toolChoice,
      summary: given.reasoning?.summary ?? given.reasoning?.generateSummary,
      truncation: given.truncation,
    }),
    droppedFields: dropped.all(),
    droppedFromInput: dropped.ofConversation(),
  };
}

type ParsedRequest = ReturnType<typeof responseRequest>;

/** The options of the request to the model, without the conversation. */
function optionsOf(
  given: ParsedRequest,
  tools: readonly FunctionTool[],
  store: boolean,
): Omit<CompletionRequest, "messages"> {
  const {
    model,
    input,
    instructions,
    previousResponseId,
    stream,
    sessionId,
    turnId,
    tools: _tools,
    toolChoice,
    parallelToolCalls,
    text,
    reasoning,
    topLogprobs = 0,
    truncation,
    include = [],
    ...options
  } = given;
  const logprobs = topLogprobs > 0 || include.includes(includedLogprobs);
  return {
    ...requestMembers(options),
    ...toolUse({ tools, toolChoice, parallelToolCalls }, "tool_choice.name"),
    ...formatOf(text?.format),
    ...(text?.verbosity === undefined ? {} : { verbosity: text.verbosity }),
    ...(reasoning?.effort === undefined ? {} : { reasoningEffort: reasoning.effort }),
    ...(logprobs ? { logprobs } : {}),
    ...(topLogprobs === 0 ? {} : { topLogprobs }),
    store,
  };
}

function formatOf(format: ResponseFormat | undefined): Pick<CompletionRequest, "responseFormat"> {
  return format === undefined ? {} : { responseFormat: format };
}

/** Refuses input with only reasoning, which gives the model nothing to answer, unless it continues a response. */
function requireContent(input: readonly InputItem[], previousResponseId: string | null): void {
  if (previousResponseId !== null || input.some((item) => item.type !== "reasoning")) return;
  throw wrongValue("must have at least 1 item for the model to answer", "input");
}
