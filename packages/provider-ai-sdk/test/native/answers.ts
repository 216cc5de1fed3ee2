import type { NativeAnswer } from "@tollgate/conformance/provider-contract";

/** A stream of server-sent events, each with the name of its type, if any. */
export function events(...list: readonly object[]): NativeAnswer {
  const body = list.map((event) => {
    const name = "type" in event ? `event: ${event.type}\n` : "";
    return `${name}data: ${JSON.stringify(event)}\n\n`;
  });
  return { status: 200, contentType: "text/event-stream; charset=utf-8", body: body.join("") };
}

export function json(status: number, body: object): NativeAnswer {
  return { status, contentType: "application/json", body: JSON.stringify(body) };
}
