import { bodies, chatPath, type DrivenGateway } from "./drive.ts";

/** The body of the raw test requests, and its headers. */
export const text = JSON.stringify(bodies[chatPath]());
export const length = `content-length: ${text.length}`;
export const json = "content-type: application/json";

/** Sends a request as lines, and returns everything received until the host closes the connection. */
export async function exchange(
  driven: DrivenGateway,
  lines: readonly string[],
  body = text,
): Promise<string> {
  const client = await driven.rawClient();
  client.send(`${lines.join("\r\n")}\r\n\r\n${body}`);
  return client.ended();
}

export const statusOf = (answer: string): number => Number(/^HTTP\/1\.1 (\d{3})/.exec(answer)?.[1]);
export const signed = ({ key }: DrivenGateway): string => `authorization: Bearer ${key.secret}`;
