import { Ajv2020 } from "ajv/dist/2020.js";
import { openApiDocument } from "../src/index.ts";
import { operations } from "../src/operations.ts";
import { createRouter } from "../src/router.ts";

const document = openApiDocument();
const ajv = new Ajv2020({ strict: false });
ajv.addSchema({ $id: "admin", ...document });
const routeOf = createRouter(operations);

/** Throws for an answer whose status, type or body the OpenAPI document doesn't describe for its operation. */
export async function checkAnswer(
  { method, url }: Pick<Request, "method" | "url">,
  answer: Response,
): Promise<void> {
  const { path } = routeOf(method, url).route;
  const at = ["paths", `/admin/v1${path}`, method.toLowerCase(), "responses", `${answer.status}`];
  const described = follow(at);
  const body = Buffer.from(await answer.arrayBuffer()).toString();
  const named = `${method} ${path}: ${answer.status}`;
  if (described === null) throw new Error(`The document has no such answer: ${named} ${body}`);
  if (!("content" in described.value)) {
    if (body !== "")
      throw new Error(`The document has no body of such an answer: ${named} ${body}`);
    return;
  }
  const [type = ""] = (answer.headers.get("content-type") ?? "").split(";");
  const schema = follow([...described.at, "content", type, "schema"]);
  if (schema === null) throw new Error(`The document has no such type: ${named} ${type}`);
  const pointer = schema.at.map(segment).join("/");
  const validate = ajv.getSchema(`admin#/${pointer}`);
  const value = type === "application/json" ? JSON.parse(body) : body;
  if (validate?.(value)) return;
  throw new Error(`${named} isn't as documented: ${JSON.stringify(validate?.errors)} ${body}`);
}

/** The value at a path of the document, and where it is after references; null for none. */
function follow(path: readonly string[]) {
  let [value, at]: [unknown, string[]] = [document, []];
  for (const name of path) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, name)) return null;
    [value, at] = [Reflect.get(value, name), [...at, name]];
    const { $ref } = Object(value);
    if (typeof $ref === "string" && $ref.startsWith("#/components/responses/")) {
      at = $ref.slice(2).split("/");
      value = at.reduce((inside, member) => Object(inside)[member], document);
    }
  }
  return { value: Object(value), at };
}

function segment(name: string): string {
  return encodeURIComponent(name.replaceAll("~", "~0").replaceAll("/", "~1"));
}
