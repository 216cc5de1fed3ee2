import { getRandomValues } from "node:crypto";
import { v7 } from "uuid";

/** Where identifiers and random bytes come from. */
export interface IdSource {
  /** A new UUID in lower case. The default gives version 7. */
  uuid(): string;
  /** Unpredictable bytes, for secrets and salts. */
  bytes(length: number): Uint8Array;
}

/** UUID version 7 and the system's random bytes. */
export const randomIds: IdSource = {
  uuid: () => v7(),
  bytes: (length) => getRandomValues(new Uint8Array(length)),
};

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

export function isUuid(text: string): boolean {
  return uuid.test(text);
}
