import type { GatewayEvent } from "@tollgate/core";

/** Writes one line of JSON for each request that is answered with an error: ids and codes, no content and no secret. */
export function failureLog(write: (line: string) => void): (event: GatewayEvent) => void {
  return (event) => {
    if (event.type !== "answer.failed") return;
    const { at, requestId, code, status, organizationId, keyId, stepId } = event;
    const time = new Date(at).toISOString();
    const line = JSON.stringify({ time, requestId, code, status, organizationId, keyId, stepId });
    write(`${escaped(line)}\n`);
  };
}

/** Nothing that a terminal or a reader of lines could take for more than text. */
function escaped(json: string): string {
  return json.replace(
    /[^\x20-\x7e]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
