import type { GatewayRequest, GatewayResponse, StreamBody } from "@tollgate/core";
import { etagOf, isReplayed, queryOf } from "@tollgate/core/administration";
import type { Outcome, Route } from "./operation.ts";
import type { TakeTurn } from "./turns.ts";

export const json = { "content-type": "application/json" };

/** How a file takes turns to read, frees its slot at the end, and reports a failure. */
interface Reading {
  readonly release: () => void;
  readonly report: (thrown: unknown) => void;
  readonly takeTurn: TakeTurn;
}

/** Makes the answer of an operation. */
export function present(
  request: GatewayRequest,
  route: Route,
  { output, created }: Outcome,
  reading: Reading,
): GatewayResponse | Promise<GatewayResponse> {
  if (output instanceof ReadableStream)
    return presentFile(route, queryOf(request.url), fileBody(output, reading));
  reading.release();
  const next = nextPage(request, output);
  const record = typeof output === "object" ? output : null;
  const tag = route.isTagged && record !== null ? etagOf(record) : null;
  const etag: Readonly<Record<string, string>> = tag === null ? {} : { etag: `"${tag}"` };
  if (tag !== null && request.method === "GET" && isKnown(request, tag))
    return { status: 304, headers: etag, body: "" };
  return {
    status: created === null ? 200 : 201,
    headers: {
      ...json,
      ...etag,
      ...(next === null ? {} : { link: `<${next}>; rel="next"` }),
      ...(created === null ? {} : { location: locationOf(route, created) }),
      ...(record !== null && isReplayed(record) ? { "idempotency-replayed": "true" } : {}),
    },
    body: JSON.stringify(output),
  };
}

/** The tag in a header of exactly one strong tag; null for anything else. */
export function tagIn(header: string): string | null {
  return /^\s*"([\x21\x23-\x7e]{1,255})"\s*$/.exec(header)?.[1] ?? null;
}

/** Whether the caller already has the record with this tag. */
function isKnown({ headers }: GatewayRequest, tag: string): boolean {
  const header = headers.get("if-none-match") ?? "";
  return tagIn(header.replace(/^\s*W\//, "")) === tag;
}

/** The address of a new record, relative to that of its list. */
function locationOf({ path }: Route, id: string): string {
  return `${path.slice(path.lastIndexOf("/") + 1)}/${encodeURIComponent(id)}`;
}

/** The address of the next page, relative to that of this one; null at the end of a list. */
function nextPage(request: GatewayRequest, output: unknown): string | null {
  const cursor: unknown =
    typeof output === "object" && output !== null && "nextCursor" in output
      ? output.nextCursor
      : null;
  if (typeof cursor !== "string" || request.method !== "GET") return null;
  const query = queryOf(request.url);
  query.set("cursor", cursor);
  return `?${query}`;
}

async function presentFile(
  { path }: Route,
  query: URLSearchParams,
  body: Promise<StreamBody>,
): Promise<GatewayResponse> {
  const [, noun = ""] = path.split("/");
  const isCsv = query.get("format") === "csv";
  const name = `${noun}.${isCsv ? "csv" : "jsonl"}`;
  return {
    status: 200,
    headers: {
      "content-type": isCsv ? "text/csv; charset=utf-8" : "application/x-ndjson",
      "content-disposition": `attachment; filename="${name}"`,
    },
    body: await body,
  };
}

/**
 * Turns a stream of UTF-8 into the body of an answer. Reads the first piece before the answer begins, so that its failure is
 * an error answer.
 */
async function fileBody(
  file: ReadableStream<Uint8Array>,
  { release, report, takeTurn }: Reading,
): Promise<StreamBody> {
  const reader = file.getReader();
  const decoder = new TextDecoder();
  const next = () => takeTurn(() => reader.read());
  let piece = await next();
  let isLeft = false;
  return {
    byteLength: null,
    start(sink) {
      const send = async (): Promise<void> => {
        while (!piece.done && !isLeft) {
          await sink.write(decoder.decode(piece.value, { stream: true }));
          piece = await next();
        }
        if (!isLeft) sink.end();
      };
      send()
        .catch((thrown: unknown) => {
          if (isLeft) return;
          report(thrown);
          sink.fail(thrown);
        })
        .finally(release);
    },
    leave() {
      isLeft = true;
      release();
      reader.cancel().catch(() => {});
    },
  };
}
