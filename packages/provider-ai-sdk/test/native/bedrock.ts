import { crc32 } from "node:zlib";
import { createAmazonBedrock } from "@ai-sdk/amazon-bedrock";
import type { Connect } from "../../src/index.ts";

/** Amazon Bedrock's Converse protocol: JSON over a stream of binary frames. */
export const bedrock =
  (url: string): Connect =>
  ({ fetch, credential }) =>
    createAmazonBedrock({ region: "us-east-1", apiKey: credential, baseURL: url, fetch });

export const frameType = "application/vnd.amazon.eventstream";

const usage = { inputTokens: 8, outputTokens: 5, totalTokens: 17, cacheReadInputTokens: 4 };

/** The frames that end a complete answer. */
export const ending = (stopReason: string): Buffer =>
  Buffer.concat([
    frame("contentBlockStop", { contentBlockIndex: 0 }),
    frame("messageStop", { stopReason }),
    frame("metadata", { usage, metrics: { latencyMs: 1 } }),
  ]);

export const delta = (content: object): Buffer =>
  frame("contentBlockDelta", { contentBlockIndex: 0, delta: content });

export const whole = (stopReason: string, content: object): string =>
  JSON.stringify({
    output: { message: { role: "assistant", content: [content] } },
    stopReason,
    usage,
    metrics: { latencyMs: 1 },
  });

/** One frame: lengths, their checksum, headers, the JSON and a checksum of it all. */
export function frame(
  type: string,
  payload: object,
  kind: "event" | "exception" = "event",
): Buffer {
  const headers = Buffer.concat([
    header(":message-type", kind),
    header(kind === "event" ? ":event-type" : ":exception-type", type),
    header(":content-type", "application/json"),
  ]);
  const body = Buffer.from(JSON.stringify(payload));
  const prelude = uint32(16 + headers.length + body.length, headers.length);
  const checked = Buffer.concat([prelude, uint32(crc32(prelude)), headers, body]);
  return Buffer.concat([checked, uint32(crc32(checked))]);
}

function header(name: string, value: string): Buffer {
  const length = Buffer.alloc(2);
  length.writeUInt16BE(Buffer.byteLength(value));
  const stringType = 7;
  const start = [Buffer.from([name.length]), Buffer.from(name), Buffer.from([stringType])];
  return Buffer.concat([...start, length, Buffer.from(value)]);
}

function uint32(...values: readonly number[]): Buffer {
  const bytes = Buffer.alloc(4 * values.length);
  for (const [index, value] of values.entries()) bytes.writeUInt32BE(value, 4 * index);
  return bytes;
}
