import type { StoredResponse } from "@tollgate/core/store";
import type { ResponseRecord, ResponseView, RowName } from "@tollgate/store-engine";

/** The stored responses, each with the one it is built on or with the messages before it. */
export interface Responses extends Omit<ResponseView, "response"> {
  response(organizationId: string, id: string): ResponseRecord | null;
  /** A response and those it is built on, oldest first. */
  chain(response: ResponseRecord): readonly ResponseRecord[];
  /** In the place of one that is there. */
  set(record: ResponseRecord): void;
  remove(name: RowName): void;
}

export function createResponses(): Responses {
  const rows = new Map<string, ResponseRecord>();
  /** By what they are built on. */
  const continuations = new Map<string, Set<string>>();

  const response = (organizationId: string, id: string): ResponseRecord | null =>
    rows.get(keyOf({ organizationId, id })) ?? null;
  const previous = ({ organizationId, builtOn }: ResponseRecord): ResponseRecord | null =>
    builtOn === null ? null : response(organizationId, builtOn);
  const unlink = ({ organizationId, id, builtOn }: ResponseRecord): void => {
    if (builtOn === null) return;
    const name = keyOf({ organizationId, id: builtOn });
    continuations.get(name)?.delete(id);
    if (continuations.get(name)?.size === 0) continuations.delete(name);
  };
  const remove = (name: RowName): void => {
    const row = response(name.organizationId, name.id);
    if (row) unlink(row);
    rows.delete(keyOf(name));
  };
  return {
    response,
    chain(last) {
      const newestFirst: ResponseRecord[] = [];
      for (let at: ResponseRecord | null = last; at; at = previous(at)) newestFirst.push(at);
      return newestFirst.toReversed();
    },
    messagesOf(organizationId, id) {
      const row = response(organizationId, id);
      if (!row) throw new TypeError("there is no such response");
      return row;
    },
    continuations: (organizationId, id) => [
      ...(continuations.get(keyOf({ organizationId, id })) ?? []),
    ],
    expiredResponses(at, limit) {
      const expired = [...rows.values()].filter(({ expiresAt }) => expiresAt <= at);
      return expired.sort(byExpiry).slice(0, limit);
    },
    set(record) {
      remove(record);
      const { organizationId, id, builtOn } = record;
      rows.set(keyOf(record), record);
      if (builtOn === null) return;
      const name = keyOf({ organizationId, id: builtOn });
      continuations.set(name, (continuations.get(name) ?? new Set()).add(id));
    },
    remove,
  };
}

/** An id is unique within its organization only. */
function keyOf({ organizationId, id }: RowName): string {
  return JSON.stringify([organizationId, id]);
}

function byExpiry(a: ResponseRecord, b: ResponseRecord): number {
  return a.expiresAt - b.expiresAt;
}

/** A response with bytes of its own, so that nobody else's change of them is seen. */
export function copyOf({ builtOn, inherited, ...response }: ResponseRecord): StoredResponse {
  return {
    ...response,
    body: new Uint8Array(response.body),
    input: new Uint8Array(response.input),
    messages: new Uint8Array(response.messages),
  };
}
