import type { FunctionTool } from "../../domain/completion-request.ts";
import type { Limits } from "../../domain/limits.ts";
import { sha256 } from "../../kernel/digest.ts";
import { wrongValue } from "../read.ts";

/** A group of functions under a shared name, which Responses clients can send. */
export interface NamespaceTool {
  readonly type: "namespace";
  readonly name: string;
  readonly description?: string;
  readonly tools: readonly FunctionTool[];
}

/** A function as the client knows it: by its name, and its namespace if it has one. */
export interface CalledFunction {
  readonly name: string;
  readonly namespace?: string;
}

/** The functions in namespaces, by the names that the model knows. */
export type Namespaces = ReadonlyMap<string, CalledFunction>;

/** The longest function name that every upstream accepts. */
const maxNameLength = 64;

/**
 * The name by which the model knows a function. It depends only on the two names, so a call means the same in all later
 * requests. If they are too long together, a digest replaces the end.
 */
export function modelName({ name, namespace }: CalledFunction): string {
  if (namespace === undefined) return name;
  const joined = `${namespace}__${name}`;
  if (joined.length <= maxNameLength) return joined;
  const digest = sha256(JSON.stringify([namespace, name]))
    .toString("hex")
    .slice(0, 12);
  return `${joined.slice(0, maxNameLength - digest.length - 1)}_${digest}`;
}

/**
 * The tools as the model gets them. Those in a namespace become separate functions, each with the namespace's description
 * before its own.
 * @throws GatewayError `invalid_value` for too many tools, for two tools with the same name, or if the copies of
 * namespaces' descriptions are larger than a body may be
 */
export function flattenTools(
  tools: readonly (FunctionTool | NamespaceTool)[],
  limits: Limits,
): { readonly tools: readonly FunctionTool[]; readonly namespaces: Namespaces } {
  const flat: FunctionTool[] = [];
  const namespaces = new Map<string, CalledFunction>();
  let repeated = 0;
  const plain = new Set(tools.flatMap((tool) => ("tools" in tool ? [] : tool.name)));
  for (const [at, tool] of tools.entries()) {
    if (!("tools" in tool)) {
      flat.push(tool);
      continue;
    }
    repeated += Buffer.byteLength(tool.description ?? "") * tool.tools.length;
    if (repeated > limits.bodyBytes)
      throw wrongValue(
        `must be shorter: every function of the namespace repeats it, and all copies may total at most ${limits.bodyBytes} bytes`,
        `tools[${at}].description`,
      );
    for (const [index, member] of tool.tools.entries()) {
      const called = { name: member.name, namespace: tool.name };
      const name = modelName(called);
      if (plain.has(name) || namespaces.has(name))
        throw wrongValue(
          `would have the name '${name}', like another function: rename one of them`,
          `tools[${at}].tools[${index}].name`,
        );
      namespaces.set(name, called);
      flat.push({ ...member, name, ...descriptionOf(tool, member) });
    }
  }
  if (flat.length > limits.tools)
    throw wrongValue(`must have at most ${limits.tools} items, with those of namespaces`, "tools");
  return { tools: flat, namespaces };
}

function descriptionOf(
  { description: ofAll }: NamespaceTool,
  { description: own }: FunctionTool,
): { readonly description?: string } {
  const description = [ofAll, own].filter((text) => text !== undefined && text !== "").join("\n\n");
  return description === "" ? {} : { description };
}
