import type {
  ResponseRepository,
  StepSweep,
  SweepResult,
  TranscriptSweep,
} from "@tollgate/core/store";
import { forgetClaim } from "./claims.ts";
import {
  type Change,
  type ContentName,
  type Decision,
  dueExpiry,
  type HeldContent,
  isOwnedBy,
  keptExpiry,
  type LinkedResponse,
  type Operation,
  type ResponseView,
  type RetentionView,
  type RowName,
  type SessionState,
  unchanged,
} from "./model.ts";
import { historyFrom } from "./sessions.ts";

/**
 * Deletes an owner's unexpired response and the copy that is kept for its idempotency key, and writes the leaf. Returns
 * whether the response existed.
 */
export function deleteResponse(
  view: ResponseView,
  { owner, id, at, leaf }: Parameters<ResponseRepository["delete"]>[0],
): Decision<boolean> {
  const { organizationId } = owner;
  const response = view.response(organizationId, id);
  if (!response || !isOwnedBy(owner, response) || response.expiresAt <= at) return unchanged(false);
  const { builtOn } = response;
  const change = [
    ...removeResponses(view, [{ organizationId, id, builtOn }]),
    ...forgetClaim(response),
  ];
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
 * The maximum number of kept responses, and of their bytes, that a change removes in addition to those it was asked to
 * remove. The sweep removes the rest.
 */
const maxKeptRemoved = 32;
const maxKeptBytesRemoved = 1_048_576;

/** A response to remove. `keptBytes` is null if the change was asked to remove it. */
interface Removable extends LinkedResponse {
  readonly keptBytes: number | null;
}

/**
 * Removes responses. A response that others are built on is only hidden: it loses its body and its input, and its messages
 * stay for their histories. It is removed with the last of them. So removing a response costs the same however many others
 * are built on it.
 */
function removeResponses(view: ResponseView, removed: readonly LinkedResponse[]): Change {
  const named = new Map(removed.map((row) => [keyOf(row), row]));
  const gone = new Set<string>();
  const change: Operation[] = [];
  const limit = removed.length + maxKeptRemoved + 1;
  let [room, byteRoom] = [maxKeptRemoved, maxKeptBytesRemoved];
  const isFree = ({ organizationId, id }: RowName): boolean =>
    view
      .continuations(organizationId, id, limit)
      .every((continuation) => gone.has(keyOf({ organizationId, id: continuation })));
  /** The response that this one is built on, if it should be removed once nothing is built on it. */
  const originOf = ({ organizationId, builtOn: id }: LinkedResponse): Removable | null => {
    if (id === null) return null;
    const other = named.get(keyOf({ organizationId, id }));
    if (other) return { ...other, keptBytes: null };
    const origin = view.response(organizationId, id);
    if (!origin || origin.expiresAt > dueExpiry) return null;
    const { builtOn, keptBytes } = origin;
    return { organizationId, id, builtOn, keptBytes };
  };
  const removeUpFrom = (first: LinkedResponse): void => {
    for (let row: Removable | null = { ...first, keptBytes: null }; row; row = originOf(row)) {
      const { organizationId, id, keptBytes } = row;
      if (gone.has(keyOf(row)) || !isFree(row)) return;
      if (keptBytes !== null) {
        if (room === 0 || keptBytes > byteRoom) {
          change.push(hidden(row, dueExpiry));
          return;
        }
        room--;
        byteRoom -= keptBytes;
      }
      gone.add(keyOf(row));
      change.push({ write: "remove response", row: { organizationId, id } });
    }
  };
  // Later ones first, because they are usually built on earlier ones.
  for (const row of removed.toReversed()) removeUpFrom(row);
  for (const row of removed) if (!gone.has(keyOf(row))) change.push(hidden(row, keptExpiry));
  return change;
}

function hidden(
  { organizationId, id }: RowName,
  expiresAt: typeof keptExpiry | typeof dueExpiry,
): Operation {
  return { write: "hide response", row: { organizationId, id, expiresAt } };
}

function keyOf({ organizationId, id }: RowName): string {
  return JSON.stringify([organizationId, id]);
}

/**
 * A sweep looks at this many organizations at once. Finding out that nothing is due in one takes a look into its index, and
 * other work waits meanwhile.
 */
const organizationsPerPage = 200;

/** Removes the oldest settled Steps, organization by organization, and records the number in a leaf for each. */
export function sweepSteps(view: RetentionView, sweep: StepSweep): Decision<SweepResult> {
  const { from, at, keep, limit, unfolded, leaf } = sweep;
  const before = at - keep;
  const change: Operation[] = [];
  let removed = 0;
  const page = view.organizationsOfOldSteps(before, { from, limit: organizationsPerPage });
  for (const organizationId of page.due) {
    const until = Math.min(before, unfolded.get(organizationId) ?? before);
    const ids = view.oldSteps(organizationId, until, limit - removed);
    if (ids.length === 0) continue;
    for (const id of ids) change.push({ write: "remove step", row: { organizationId, id } });
    change.push({ write: "insert leaf", row: leaf({ organizationId, count: ids.length }) });
    removed += ids.length;
    if (removed === limit) return { result: { removed, next: organizationId }, change };
  }
  return { result: { removed, next: page.next }, change };
}

/** A sweep erases at most this much at once. A single content may be larger. */
const maxErasedContents = 500;
const maxErasedBytes = 4_194_304;

/**
 * Erases the content of the least recently used Sessions, organization by organization. A Session with more than 500 contents
 * or 4 MiB takes several sweeps, each of which names it in its leaf. It counts with the last one.
 */
export function sweepTranscripts(
  view: RetentionView,
  sweep: TranscriptSweep,
): Decision<SweepResult> {
  const { from, at, keep, limit } = sweep;
  const change: Operation[] = [];
  const room = createRoom();
  let [examined, removed] = [0, 0];
  const page = view.organizationsOfOldSessions(at - keep, { from, limit: organizationsPerPage });
  for (const due of page.due) {
    const swept = sweepOrganization(view, sweep, { ...due, room, limit: limit - examined });
    change.push(...swept.change);
    examined += swept.examined;
    removed += swept.removed;
    if (examined === limit || room.isFull())
      return { result: { removed, next: due.organizationId }, change };
  }
  return { result: { removed, next: page.next }, change };
}

/** The rest of what a sweep may erase. */
interface Room {
  /** The first of these contents that fit. */
  take(contents: readonly HeldContent[]): readonly HeldContent[];
  /** Whether something didn't fit. */
  isFull(): boolean;
}

function createRoom(): Room {
  let [count, bytes, isFull] = [0, 0, false];
  return {
    take(contents) {
      const taken: HeldContent[] = [];
      for (const content of contents) {
        // Even a content above the limit is erased, alone.
        isFull ||=
          count === maxErasedContents || (count > 0 && bytes + content.bytes > maxErasedBytes);
        if (isFull) break;
        count += 1;
        bytes += content.bytes;
        taken.push(content);
      }
      return taken;
    },
    isFull: () => isFull,
  };
}

interface SweptOrganization {
  readonly examined: number;
  readonly removed: number;
  readonly change: readonly Operation[];
}

function sweepOrganization(
  view: RetentionView,
  { at, keep, leaf }: TranscriptSweep,
  place: {
    readonly organizationId: string;
    readonly mark: number;
    readonly limit: number;
    readonly room: Room;
  },
): SweptOrganization {
  const { organizationId, mark, limit, room } = place;
  const before = at - keep;
  const sessions = view.sessionsInOrder(organizationId, mark, limit);
  const inUse = sessions.findIndex(({ updatedAt }) => updatedAt >= before);
  const old = inUse < 0 ? sessions : sessions.slice(0, inUse);
  const erased = new Map<string, readonly ContentName[]>();
  const seen = new Set<string>();
  let examined = 0;
  let removed = 0;
  for (const session of old) {
    removed += eraseHistory(view, { session, before, erased, seen, room });
    // The next sweep looks at this Session again.
    if (room.isFull()) break;
    examined++;
  }
  const change: Operation[] = [...erased].map(([id, contents]) => ({
    write: "erase session",
    row: { organizationId, id, contents },
  }));
  const last = old[examined - 1];
  if (last) change.push({ write: "mark erased", row: { organizationId, updated: last.updated } });
  if (erased.size > 0)
    change.push({
      write: "insert leaf",
      row: leaf({ organizationId, sessionIds: [...erased.keys()] }),
    });
  return { examined, removed, change };
}

/**
 * Erases a Session and those that store the beginning of its history: their content may have been kept only for it. Stops when
 * there is no more room. Returns how many were erased whole.
 */
function eraseHistory(
  view: RetentionView,
  {
    session,
    before,
    erased,
    seen,
    room,
  }: {
    readonly session: SessionState;
    readonly before: number;
    /** The erased contents of each Session. */
    readonly erased: Map<string, readonly ContentName[]>;
    /** The Sessions that were looked at for others. */
    readonly seen: Set<string>;
    readonly room: Room;
  },
): number {
  let whole = 0;
  for (let at: SessionState | null = session; at; at = historyFrom(view, at)) {
    if (seen.has(at.id)) break;
    seen.add(at.id);
    const held = view.contents(at, maxErasedContents + 1);
    // Its content is already gone. Finding out if it is still needed could mean reading any number of Sessions.
    if (held.length === 0) continue;
    // A Session in use needs the content that its history begins with.
    if (at.updatedAt >= before || view.isNeededSince(at, before)) break;
    const contents = room.take(held).map(({ of, stepId, place }) => ({ of, stepId, place }));
    if (contents.length > 0) erased.set(at.id, contents);
    if (room.isFull()) break;
    whole++;
  }
  return whole;
}
