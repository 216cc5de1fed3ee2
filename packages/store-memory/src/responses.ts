import {
  GatewayError,
  type Owner,
  type ResponseDraft,
  type ResponseHistory,
  type StoredResponse,
} from "@tollgate/core/store";
import { isOwnedBy } from "./is-owned-by.ts";

/** The stored responses, each linked to the one it continues. */
export interface Responses {
  /** Throws when the organization has the id already. */
  requireFree(draft: ResponseDraft): void;
  insert(draft: ResponseDraft): void;
  get(owner: Owner, id: string, at: number): StoredResponse | null;
  history(owner: Owner, id: string, at: number): ResponseHistory | null;
  /** False when there is none to remove. */
  remove(owner: Owner, id: string, at: number): boolean;
  /** Removes up to `limit` that have expired, oldest expiry first; says how many. */
  sweep(at: number, limit: number): number;
}

interface ResponseRow {
  readonly response: StoredResponse;
  /** The response its history is read through; null when that is gone or never was. */
  previous: ResponseRow | null;
  /** Messages of responses that are gone, as JSON arrays, oldest first. */
  inherited: readonly Uint8Array[];
  readonly continuations: Set<ResponseRow>;
}

export function createResponses(): Responses {
  const rows = new Map<string, ResponseRow>();
  const find = (owner: Owner, id: string): ResponseRow | null => {
    const row = rows.get(nameOf(owner.organizationId, id));
    return row && isOwnedBy(owner, row.response) ? row : null;
  };
  const findLive = (owner: Owner, id: string, at: number): ResponseRow | null => {
    const row = find(owner, id);
    return row && row.response.expiresAt > at ? row : null;
  };
  const remove = (row: ResponseRow): void => {
    unlink(row);
    rows.delete(nameOf(row.response.organizationId, row.response.id));
  };
  return {
    requireFree({ organizationId, id }) {
      if (rows.has(nameOf(organizationId, id)))
        throw new GatewayError("invalid_argument", "The id for a stored response is taken.");
    },
    insert(draft) {
      const { previousResponseId: previousId, organizationId, id } = draft;
      const row = link(draft, previousId === null ? null : find(draft, previousId));
      rows.set(nameOf(organizationId, id), row);
    },
    get(owner, id, at) {
      const row = findLive(owner, id, at);
      return row && copyOf(row.response);
    },
    history(owner, id, at) {
      const row = findLive(owner, id, at);
      return row && { response: copyOf(row.response), messages: messagesOf(row) };
    },
    remove(owner, id, at) {
      const row = findLive(owner, id, at);
      if (row) remove(row);
      return row !== null;
    },
    sweep(at, limit) {
      const expired = [...rows.values()].filter(({ response }) => response.expiresAt <= at);
      expired.sort((a, b) => a.response.expiresAt - b.response.expiresAt);
      const swept = expired.slice(0, limit);
      swept.forEach(remove);
      return swept.length;
    },
  };
}

function nameOf(organizationId: string, id: string): string {
  return JSON.stringify([organizationId, id]);
}

function link(draft: ResponseDraft, previous: ResponseRow | null): ResponseRow {
  const { inherited, ...response } = draft;
  const row: ResponseRow = {
    response: copyOf(response),
    previous,
    inherited: previous ? [] : [Uint8Array.from(inherited)],
    continuations: new Set(),
  };
  previous?.continuations.add(row);
  return row;
}

/** What a response's continuations were built on moves into each of them. */
function unlink(row: ResponseRow): void {
  const moved = [...row.inherited, row.response.messages];
  row.previous?.continuations.delete(row);
  for (const continuation of row.continuations) {
    continuation.inherited = [...moved, ...continuation.inherited];
    continuation.previous = row.previous;
    row.previous?.continuations.add(continuation);
  }
}

function messagesOf(row: ResponseRow): readonly Uint8Array[] {
  const newestFirst: Uint8Array[] = [];
  for (let at: ResponseRow | null = row; at; at = at.previous)
    newestFirst.push(at.response.messages, ...at.inherited.toReversed());
  return newestFirst.toReversed().map((messages) => Uint8Array.from(messages));
}

function copyOf(response: StoredResponse): StoredResponse {
  return {
    ...response,
    body: Uint8Array.from(response.body),
    input: Uint8Array.from(response.input),
    messages: Uint8Array.from(response.messages),
  };
}
