import { bodies, type DrivenGateway } from "./drive.ts";

/** The request line of a raw test request, its body, and the headers of the body. */
export function rawRequest(path: keyof typeof bodies) {
  const text = JSON.stringify(bodies[path]());
  return { line: `POST /ai${path} HTTP/1.1`, text, length: `content-length: ${text.length}` };
}

export const json = "content-type: application/json";

/** Sends a request as lines, and returns everything received until the host closes the connection. */
export async function exchange(
  driven: DrivenGateway,
  lines: readonly string[],
  body: string,
): Promise<string> {
  const client = await driven.rawClient();
  client.send(`${lines.join("\r\n")}\r\n\r\n${body}`);
  return client.ended();
}

export const statusOf = (answer: string): number => Number(/^HTTP\/1\.1 (\d{3})/.exec(answer)?.[1]);
export const signed = ({ key }: DrivenGateway): string => `authorization: Bearer ${key.secret}`;
