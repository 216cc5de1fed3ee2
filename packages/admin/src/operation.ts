import { type Administration, GatewayError } from "@tollgate/core";
import type { AdminRole } from "@tollgate/core/administration";
import { type Schema, tryRead, z } from "@tollgate/core/schemas";
import type { AdminGrant } from "./grant.ts";

/** The schemas of an operation's parameters, by name. */
export type Parameters = Readonly<Record<string, Schema<unknown>>>;

type Values<Shape extends Parameters> = z.output<ReturnType<typeof z.strictObject<Shape>>>;

/** Makes the OpenAPI document of the operations. */
type Describe = () => Readonly<Record<string, unknown>>;

/** One operation of the admin API, as its table defines it. */
export interface Definition<Shape extends Parameters, Output> {
  readonly method: "GET" | "POST" | "DELETE";
  /** Below `/admin/v1`, with parameters in braces: `/keys/{id}`. */
  readonly path: string;
  /** One sentence for the reference. */
  readonly summary: string;
  readonly role: AdminRole;
  /** Whether it concerns every organization at once, so that only a grant for all of them permits it. */
  readonly platform?: boolean;
  /** Whether it writes a record of who did it. Default: for POST and DELETE. */
  readonly audited?: boolean;
  /** Whether it may read every record of a filter, as a summary, a series or an export does. */
  readonly isHeavy?: boolean;
  /** Whether it may read or change every record of the store. One of these runs at a time. */
  readonly isMaintenance?: boolean;
  /** The id of the record that the operation creates. Its answer is then a 201 with the record's address. */
  readonly created?: (output: Output) => string;
  /** Whether the answer is one record with a tag, for `If-Match` and `If-None-Match`. */
  readonly isTagged?: boolean;
  /**
   * The path of the record that a request must have read before, because it replaces what the record holds. Without the
   * record's tag in `If-Match`, the answer is 428.
   */
  readonly replaces?: string;
  /** All parameters: those of the path, and those of the query or of the JSON body. */
  readonly input: Shape;
  /** The answer, or `file` for a stream of CSV or JSON Lines. */
  readonly output: Schema<Output> | "file";
  readonly call: (
    administration: Administration,
    input: Values<Shape>,
    grant: AdminGrant,
    describe: Describe,
  ) => PromiseLike<Output | ReadableStream<Uint8Array>>;
}

/** An operation, as the router sees it. */
export interface Route extends Pick<Definition<Parameters, unknown>, "method" | "path" | "role"> {
  readonly summary: string;
  readonly platform: boolean;
  readonly audited: boolean;
  readonly isHeavy: boolean;
  readonly isMaintenance: boolean;
  readonly isTagged: boolean;
  readonly replaces: string | null;
  readonly input: Parameters;
  readonly output: Schema<unknown> | "file";
  readonly creates: boolean;
  /** @throws GatewayError `unknown_parameter`, `missing_required_parameter` or `invalid_argument` */
  readonly run: (
    administration: Administration,
    input: unknown,
    grant: AdminGrant,
    describe: Describe,
  ) => Promise<Outcome>;
}

/** The result of an operation, and the id of the record that it created. */
export interface Outcome {
  readonly output: unknown;
  readonly created: string | null;
}

/** An operation, with the type of its answer for the client. */
export interface Operation<Output> extends Route {
  readonly output: Schema<Output> | "file";
}

/** Defines an operation. */
export function operation<const Shape extends Parameters, Output>({
  call,
  created,
  ...definition
}: Definition<Shape, Output>): Operation<Output> {
  const { method, audited = method !== "GET", platform = false } = definition;
  const { isHeavy = false, isMaintenance = false } = definition;
  const { isTagged = false, replaces = null } = definition;
  const schema = z.strictObject(definition.input);
  return {
    ...definition,
    audited,
    platform,
    isHeavy,
    isMaintenance,
    isTagged,
    replaces,
    creates: created !== undefined,
    async run(administration, input, grant, describe) {
      const output = await call(administration, readParameters(schema, input), grant, describe);
      const isRecord = created !== undefined && !(output instanceof ReadableStream);
      return { output, created: isRecord ? created(output) : null };
    },
  };
}

/** Checks parameters. An unknown one is named as such, wherever it is. */
export function readParameters<Value>(schema: Schema<Value>, input: unknown): Value {
  const { value, problems } = tryRead(schema, input, { noun: "parameter" });
  const [first] = problems;
  if (first === undefined && value !== null) return value;
  const { path = "", message = "" } = first ?? {};
  const all = problems.map((problem) => problem.message).join("\n");
  throw new GatewayError(codeOf(path, message), all, {
    problems,
    ...(path === "" ? {} : { param: path }),
  });
}

function codeOf(path: string, message: string) {
  if (message.startsWith("Unknown parameter:")) return "unknown_parameter";
  // A grant for one organization doesn't need to name it, and a grant for all only if the operation requires one.
  return path === "organizationId" && message.endsWith("is required.")
    ? "missing_required_parameter"
    : "invalid_argument";
}
