import type {
  ResponseRepository,
  StepSweep,
  SweepResult,
  TranscriptSweep,
} from "@tollgate/core/store";
import { forgetClaim } from "./claims.ts";
import {
  type Change,
  type Decision,
  isOwnedBy,
  type Operation,
  type ResponseView,
  type RetentionView,
  type RowName,
  type SessionState,
  unchanged,
} from "./model.ts";
import { originOf } from "./sessions.ts";

/**
 * Deletes an owner's response that has not expired, with the copy that a claim on an idempotency key keeps, and writes the
 * leaf. Returns whether it existed.
 */
export function deleteResponse(
  view: ResponseView,
  { owner, id, at, leaf }: Parameters<ResponseRepository["delete"]>[0],
): Decision<boolean> {
  const { organizationId } = owner;
  const response = view.response(organizationId, id);
  if (!response || !isOwnedBy(owner, response) || response.expiresAt <= at) return unchanged(false);
  const change = [...removeResponses(view, [{ organizationId, id }]), ...forgetClaim(response)];
  return { result: true, change: [...change, { write: "insert leaf", row: leaf }] };
}

/** Removes expired responses, then expired claims, oldest expiry first. Returns the number removed. */
export function sweepResponses(
  view: ResponseView,
  { at, limit }: Parameters<ResponseRepository["sweep"]>[0],
): Decision<number> {
  const expired = view.expiredResponses(at, limit);
  const claims = expired.length < limit ? view.expiredClaims(at, limit - expired.length) : [];
  const removed = claims.map((row) => ({ write: "remove claim", row }) as const);
  return {
    result: expired.length + claims.length,
    change: [...removeResponses(view, expired), ...removed],
  };
}

/**
 * Removes responses. A remaining response that was built on a removed one gets the messages of all removed responses
 * before it, in one step. Removing a large part of a chain therefore copies its messages only once.
 */
function removeResponses(view: ResponseView, removed: readonly RowName[]): Change {
  const removedKeys = new Set(removed.map(keyOf));
  const relinked: Operation[] = removed.flatMap(({ organizationId, id }) =>
    view
      .continuations(organizationId, id)
      .map((continuationId) => ({ organizationId, id: continuationId }))
      .filter((continuation) => !removedKeys.has(keyOf(continuation)))
      .map((continuation) => relinkToRemaining(view, continuation, removedKeys)),
  );
  return [...relinked, ...removed.map((row) => ({ write: "remove response", row }) as const)];
}

/** Copies the messages of removed responses into the one built on them, back to the first that remains. */
function relinkToRemaining(
  view: ResponseView,
  continuation: RowName,
  removed: ReadonlySet<string>,
): Operation {
  const { organizationId, id } = continuation;
  const inherited = [view.messagesOf(organizationId, id).inherited];
  let builtOn = builtOnBy(view, continuation);
  while (builtOn !== null && removed.has(keyOf({ organizationId, id: builtOn }))) {
    const ancestor = view.messagesOf(organizationId, builtOn);
    inherited.unshift(ancestor.inherited, ancestor.messages);
    builtOn = builtOnBy(view, { organizationId, id: builtOn });
  }
  const row = { organizationId, id, builtOn, inherited: joinMessages(inherited) };
  return { write: "relink response", row };
}

function builtOnBy(view: ResponseView, { organizationId, id }: RowName): string | null {
  return view.response(organizationId, id)?.builtOn ?? null;
}

function keyOf({ organizationId, id }: RowName): string {
  return JSON.stringify([organizationId, id]);
}

/** Removes the oldest settled Steps, organization by organization, and records the number in a leaf for each. */
export function sweepSteps(view: RetentionView, sweep: StepSweep): Decision<SweepResult> {
  const { at, keep, limit, leaf } = sweep;
  const before = at - keep;
  const change: Operation[] = [];
  let removed = 0;
  for (const organizationId of view.organizationsOfOldSteps(before, limit)) {
    const ids = view.oldSteps(organizationId, before, limit - removed);
    for (const id of ids) change.push({ write: "remove step", row: { organizationId, id } });
    change.push({ write: "insert leaf", row: leaf({ organizationId, count: ids.length }) });
    removed += ids.length;
    if (removed === limit) break;
  }
  return { result: { removed, more: removed === limit }, change };
}

/** Erases the content of the least recently used Sessions, organization by organization. */
export function sweepTranscripts(
  view: RetentionView,
  sweep: TranscriptSweep,
): Decision<SweepResult> {
  const { at, keep, limit } = sweep;
  const change: Operation[] = [];
  let [examined, removed] = [0, 0];
  for (const due of view.organizationsOfOldSessions(at - keep, limit)) {
    const swept = sweepOrganization(view, sweep, { ...due, limit: limit - examined });
    change.push(...swept.change);
    examined += swept.examined;
    removed += swept.removed;
    if (examined === limit) break;
  }
  return { result: { removed, more: examined === limit }, change };
}

interface SweptOrganization {
  readonly examined: number;
  readonly removed: number;
  readonly change: readonly Operation[];
}

function sweepOrganization(
  view: RetentionView,
  { at, keep, leaf }: TranscriptSweep,
  place: { readonly organizationId: string; readonly mark: number; readonly limit: number },
): SweptOrganization {
  const { organizationId, mark, limit } = place;
  const before = at - keep;
  const sessions = view.sessionsInOrder(organizationId, mark, limit);
  const inUse = sessions.findIndex(({ updatedAt }) => updatedAt >= before);
  const old = inUse < 0 ? sessions : sessions.slice(0, inUse);
  const erased = new Set<string>();
  for (const session of old) eraseLineage(view, { session, before, erased });
  const sessionIds = [...erased];
  const change: Operation[] = sessionIds.map((id) => ({
    write: "erase session",
    row: { organizationId, id },
  }));
  const last = old.at(-1);
  if (last) change.push({ write: "mark erased", row: { organizationId, updated: last.updated } });
  if (erased.size > 0)
    change.push({ write: "insert leaf", row: leaf({ organizationId, sessionIds }) });
  return { examined: old.length, removed: erased.size, change };
}

/** Erases a Session and those it branched from, which an unerased branch may have kept. */
function eraseLineage(
  view: RetentionView,
  lineage: {
    readonly session: SessionState;
    readonly before: number;
    readonly erased: Set<string>;
  },
): void {
  const { before, erased } = lineage;
  for (let at: SessionState | null = lineage.session; at && !erased.has(at.id); ) {
    // A Session in use needs the content of those it branched from.
    if (at.updatedAt >= before || view.hasBranchSince(at, before)) return;
    if (view.holdsContent(at)) erased.add(at.id);
    at = originOf(view, at);
  }
}

const opening = 0x5b;
const closing = 0x5d;
const comma = Uint8Array.of(0x2c);
const whitespace: ReadonlySet<number> = new Set([0x20, 0x09, 0x0a, 0x0d]);

/** Joins JSON arrays in UTF-8 into one. Every element stays byte for byte the same. */
export function joinMessages(arrays: readonly Uint8Array[]): Uint8Array {
  const lists = arrays.map(elementsOf).filter((list) => !list.every(isWhitespace));
  const separated = lists.flatMap((list, place) => (place === 0 ? [list] : [comma, list]));
  return Buffer.concat([Uint8Array.of(opening), ...separated, Uint8Array.of(closing)]);
}

/** The text between an array's brackets. */
function elementsOf(array: Uint8Array): Uint8Array {
  const start = array.findIndex((byte) => !isWhitespace(byte));
  const end = array.findLastIndex((byte) => !isWhitespace(byte));
  if (end <= start || array[start] !== opening || array[end] !== closing)
    throw new TypeError("Messages must be a JSON array.");
  return array.subarray(start + 1, end);
}

function isWhitespace(byte: number): boolean {
  return whitespace.has(byte);
}
