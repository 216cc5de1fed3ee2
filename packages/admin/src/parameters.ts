import { GatewayError } from "@tollgate/core";
import type { Schema } from "@tollgate/core/schemas";
import type { Parameters } from "./operation.ts";

/** The parameters that a request sends as headers, with their headers. */
export const headerParameters = [
  { name: "ifMatch", header: "If-Match" },
  { name: "idempotencyKey", header: "Idempotency-Key" },
] as const;

/**
 * Reads parameters from a query. A repeated name is a list, a name with a dot a member (`dataClass.from`), and `true`, `false`
 * and whole numbers are values where the parameter takes such a value.
 * @throws GatewayError `invalid_argument` if a parameter that takes one value is repeated
 */
export function decodeQuery(
  query: URLSearchParams,
  parameters: Parameters,
): ReadonlyMap<string, unknown> {
  const decoded = new Map<string, unknown>();
  const members = new Map<string, Map<string, unknown>>();
  for (const name of new Set(query.keys())) {
    const dot = name.indexOf(".");
    const owner = dot < 0 ? name : name.slice(0, dot);
    const parameter = parameters[owner];
    const kind = kindOf(parameter);
    const values = query.getAll(name).map((text) => valueFrom(text, kind));
    if (values.length > 1 && parameter !== undefined && (dot >= 0 || !takesList(parameter)))
      throw new GatewayError(
        "invalid_argument",
        `\`${name}\` takes one value and is given ${values.length} times.`,
        { param: name },
      );
    const value = values.length === 1 ? values[0] : values;
    if (dot < 0 || kind !== "object") {
      decoded.set(name, value);
      continue;
    }
    const inside = members.get(owner) ?? new Map<string, unknown>();
    members.set(owner, inside.set(name.slice(dot + 1), value));
  }
  // A value next to members stays, and fails its schema.
  for (const [owner, inside] of members)
    if (!decoded.has(owner)) decoded.set(owner, Object.fromEntries(inside));
  return decoded;
}

/** Writes parameters as a query, which `decodeQuery` reads. Leaves out null and `everyOrganization`. */
export function encodeQuery(parameters: object): URLSearchParams {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    if (value === null || value === undefined || typeof value === "symbol") continue;
    if (Array.isArray(value)) for (const item of value) query.append(name, String(item));
    else if (typeof value !== "object") query.append(name, String(value));
    else
      for (const [key, member] of Object.entries(value))
        query.append(`${name}.${key}`, `${member}`);
  }
  return query;
}

type Kind = "boolean" | "number" | "object" | "text";

function valueFrom(text: string, kind: Kind): unknown {
  if (kind === "boolean" && (text === "true" || text === "false")) return text === "true";
  if (kind === "number" && /^-?\d{1,15}$/.test(text)) return Number(text);
  return text;
}

/** The kind of value that a parameter takes, inside the schemas that make it optional. */
function kindOf(parameter: Schema<unknown> | undefined): Kind {
  let inside: unknown = parameter;
  while (isSchema(inside)) {
    const { def } = inside._zod;
    if (def.type === "boolean" || def.type === "number") return def.type;
    if (def.type === "object" || def.type === "record") return "object";
    inside = "innerType" in def ? def.innerType : null;
  }
  return "text";
}

/** Whether a parameter takes a list, inside the schemas that make it optional. */
function takesList(parameter: unknown): boolean {
  if (!isSchema(parameter)) return false;
  const { def } = parameter._zod;
  if (def.type === "array") return true;
  if ("options" in def && Array.isArray(def.options)) return def.options.some(takesList);
  return "innerType" in def && takesList(def.innerType);
}

function isSchema(value: unknown): value is Schema<unknown> {
  return typeof value === "object" && value !== null && "_zod" in value;
}
