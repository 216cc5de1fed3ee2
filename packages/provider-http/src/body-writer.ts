import { createHash, type Hash, hash } from "node:crypto";
import type { Message, ProviderCall } from "@tollgate/core/provider";
import type { WriteRequest } from "./dialect.ts";

type ConversationCall = Pick<ProviderCall, "request" | "continues">;

/** How a protocol writes a request: a JSON object with a list of messages between its other members. */
export interface BodyFormat<Call extends ConversationCall> {
  /** The body up to and including the list's opening bracket. */
  start(call: Call): string;
  /** Messages as the elements of a JSON list, without its brackets. */
  elements(messages: readonly Message[]): string;
  /** The rest of the body, from the list's closing bracket on. */
  end(call: Call): string;
  /** Whether the elements of a conversation are those of its first `count` messages and those of the rest. */
  isDivisible(messages: readonly Message[], count: number): boolean;
}

/** A body up to the end of its messages, kept for the next request of the conversation. */
interface WrittenPrefix {
  readonly start: string;
  readonly text: Buffer;
  /** The running hash of the text. */
  readonly hash: Hash;
}

/** Serializing a shorter body again is cheaper than keeping it. */
const minPrefixBytes = 8_192;

/**
 * Serializes the messages of a growing conversation once: each body continues the bytes and the hash of the previous
 * one. The garbage collector frees them together with the list of messages.
 */
export function createBodyWriter<Call extends ConversationCall>(
  format: BodyFormat<Call>,
): WriteRequest<Call> {
  const prefixes = new WeakMap<readonly Message[], WrittenPrefix>();

  return (call) => {
    const { continues = noMessages } = call;
    const { messages } = call.request;
    const start = format.start(call);
    const end = format.end(call);
    const known = prefixes.get(continues);
    const prefix =
      known?.start === start && format.isDivisible(messages, continues.length) ? known : null;
    const added = prefix
      ? afterComma(format.elements(messages.slice(continues.length)))
      : `${start}${format.elements(messages)}`;
    const before = prefix?.text.length ?? 0;
    if (before + added.length < minPrefixBytes) {
      const body = `${added}${end}`;
      return { body, sha256: () => hash("sha256", body) };
    }
    const body = Buffer.concat([
      ...(prefix ? [prefix.text] : []),
      Buffer.from(added),
      Buffer.from(end),
    ]);
    const prefixLength = body.length - Buffer.byteLength(end);
    return {
      body,
      sha256() {
        const digest = prefix ? prefix.hash.copy() : createHash("sha256");
        digest.update(body.subarray(before, prefixLength));
        const text = body.subarray(0, prefixLength);
        prefixes.set(messages, { start, text, hash: digest.copy() });
        return digest.update(end).digest("hex");
      },
    };
  };
}

const noMessages: readonly Message[] = [];

function afterComma(text: string): string {
  return text === "" ? "" : `,${text}`;
}
