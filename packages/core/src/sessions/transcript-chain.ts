import type { Message } from "../domain/message.ts";
import { sha256, sha256Of } from "../kernel/digest.ts";
import { otherWork } from "../kernel/other-work.ts";
import { canonicalMessage } from "./canonical-message.ts";

/** A request's messages as the chain counts them: an assistant message repeated right after itself counts once. */
export interface TranscriptChain {
  /** h[1..n], 32 bytes each. */
  readonly values: Buffer;
  /** The messages as JSON texts, one per chain value. */
  readonly messages: readonly string[];
  /** Where each message of the request is in the chain, from 0. */
  readonly places: readonly number[];
  /** Position from 1 of the last user message; 0 without one. */
  readonly lastUserMessage: number;
  /** The last message in canonical form, and whether it is an assistant's. */
  readonly last: string;
}

const valueBytes = 32;

/** Characters of messages after which what else waits for the process has its turn. */
const mostAtOnce = 262_144;
const largeMessage = 1_048_576;

/** h[0] = H(salt), h[i] = H(h[i-1] ‖ H(salt ‖ canonical message i)), SHA-256. */
export async function chainOf(
  messages: readonly Message[],
  salt: Uint8Array,
): Promise<TranscriptChain> {
  const values = Buffer.allocUnsafe(messages.length * valueBytes);
  const texts: string[] = [];
  const places: number[] = [];
  let head: Uint8Array = sha256(salt);
  let last = "";
  let lastUserMessage = 0;
  let size = 0;
  for (const message of messages) {
    const canonical = canonicalMessage(message);
    if (message.role === "assistant" && canonical === last) {
      places.push(texts.length - 1);
      continue;
    }
    last = canonical;
    places.push(texts.length);
    if (canonical.length > largeMessage) await otherWork();
    const text = JSON.stringify(message);
    if (text.length > largeMessage) await otherWork();
    head = nextHead(head, canonical, salt);
    values.set(head, texts.length * valueBytes);
    texts.push(text);
    size += text.length;
    if (size > mostAtOnce) {
      size = 0;
      await otherWork();
    }
    if (message.role === "user") lastUserMessage = texts.length;
  }
  return {
    values: values.subarray(0, texts.length * valueBytes),
    messages: texts,
    places,
    lastUserMessage,
    last,
  };
}

/** The chain values a reply adds to a chain: none where it repeats the assistant message it would follow. */
export function replyChain(
  chain: TranscriptChain,
  reply: readonly Message[],
  salt: Uint8Array,
): Buffer {
  const values: Uint8Array[] = [];
  let head: Uint8Array = headOf(chain);
  let last = chain.last;
  for (const message of reply) {
    const canonical = canonicalMessage(message);
    if (message.role === "assistant" && canonical === last) continue;
    last = canonical;
    head = nextHead(head, canonical, salt);
    values.push(head);
  }
  return Buffer.concat(values);
}

/** The chain value of the whole request. */
export function headOf(chain: TranscriptChain): Buffer {
  return chain.values.subarray(chain.values.length - valueBytes);
}

function nextHead(head: Uint8Array, canonical: string, salt: Uint8Array): Buffer {
  return sha256Of(head, sha256Of(salt, canonical));
}
