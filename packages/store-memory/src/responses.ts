import type { Owner, ResponseHistory, StoredResponse } from "@tollgate/core/store";
import { isOwnedBy, type ResponseRecord } from "@tollgate/store-engine";

/** The stored responses and their conversations. */
export interface Responses {
  /** Whose it is, expired or not; null when there is none. */
  ownerOf(organizationId: string, id: string): Owner | null;
  insert(record: ResponseRecord): void;
  get(owner: Owner, id: string, at: number): StoredResponse | null;
  history(owner: Owner, id: string, at: number): ResponseHistory | null;
  /** False when there is none to remove. */
  remove(owner: Owner, id: string, at: number): boolean;
  /** Removes up to `limit` that have expired, oldest expiry first; says how many. */
  sweep(at: number, limit: number): number;
}

interface ResponseRow {
  readonly response: StoredResponse;
  readonly said: Said;
}

/**
 * A conversation up to a response. Later responses hold on to it themselves, so that it lives on in them when the
 * response is removed, and goes with the last of them.
 */
interface Said {
  readonly messages: Uint8Array;
  readonly before: Said | null;
}

export function createResponses(): Responses {
  const rows = new Map<string, ResponseRow>();
  const findLive = (owner: Owner, id: string, at: number): ResponseRow | null => {
    const row = rows.get(nameOf({ organizationId: owner.organizationId, id }));
    return row && isOwnedBy(owner, row.response) && row.response.expiresAt > at ? row : null;
  };
  const remove = ({ response }: ResponseRow): boolean => rows.delete(nameOf(response));
  return {
    ownerOf: (organizationId, id) => rows.get(nameOf({ organizationId, id }))?.response ?? null,
    insert({ inherited, builtOn, ...record }) {
      const response = copyOf(record);
      const previous = rows.get(nameOf({ ...record, id: builtOn }));
      const before = previous?.said ?? { messages: new Uint8Array(inherited), before: null };
      rows.set(nameOf(record), { response, said: { messages: response.messages, before } });
    },
    get(owner, id, at) {
      const row = findLive(owner, id, at);
      return row && copyOf(row.response);
    },
    history(owner, id, at) {
      const row = findLive(owner, id, at);
      return row && { response: copyOf(row.response), messages: messagesOf(row.said) };
    },
    remove(owner, id, at) {
      const row = findLive(owner, id, at);
      return row !== null && remove(row);
    },
    sweep(at, limit) {
      const expired = [...rows.values()].filter(({ response }) => response.expiresAt <= at);
      const swept = expired.sort(byExpiry).slice(0, limit);
      for (const row of swept) remove(row);
      return swept.length;
    },
  };
}

/** An id is unique within its organization only; nothing has the name of no id. */
function nameOf(named: { readonly organizationId: string; readonly id: string | null }): string {
  return JSON.stringify([named.organizationId, named.id]);
}

function byExpiry(a: ResponseRow, b: ResponseRow): number {
  return a.response.expiresAt - b.response.expiresAt;
}

function messagesOf(said: Said): readonly Uint8Array[] {
  const newestFirst: Uint8Array[] = [];
  for (let at: Said | null = said; at; at = at.before)
    newestFirst.push(new Uint8Array(at.messages));
  return newestFirst.toReversed();
}

function copyOf(response: StoredResponse): StoredResponse {
  return {
    ...response,
    body: new Uint8Array(response.body),
    input: new Uint8Array(response.input),
    messages: new Uint8Array(response.messages),
  };
}
