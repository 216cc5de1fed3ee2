import { createHash } from "node:crypto";

/** A message: its role, and its JSON text as the client sends it. */
export interface TestMessage {
  readonly role: "system" | "user" | "assistant" | "tool";
  readonly json: string;
}

const messageOf =
  (role: TestMessage["role"]) =>
  (content: string): TestMessage => ({ role, json: JSON.stringify({ role, content }) });

export const user = messageOf("user");
export const assistant = messageOf("assistant");
export const tool = messageOf("tool");

export function sha256(...parts: readonly (string | Uint8Array)[]): Uint8Array {
  const hash = createHash("sha256");
  for (const part of parts) hash.update(part);
  return hash.digest();
}

/** The chain values of a history under an organization's salt, 32 bytes per message. */
export function chainOf(salt: Uint8Array, messages: readonly TestMessage[]): readonly Uint8Array[] {
  let head = sha256(salt);
  return messages.map(({ json }) => {
    head = sha256(head, sha256(salt, json));
    return head;
  });
}

export function hex(bytes: Uint8Array | undefined): string {
  return Buffer.from(bytes ?? []).toString("hex");
}

/** The bytes a store keeps of messages: a JSON array of their texts. */
export function contentOf(messages: readonly TestMessage[]): Uint8Array {
  return Buffer.from(`[${messages.map(({ json }) => json).join(",")}]`);
}
