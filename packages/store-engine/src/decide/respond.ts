import type { ResponseRepository } from "@tollgate/core/store";
import { type Change, type Decision, type Operation, type RowName, unchanged } from "../change.ts";
import { isOwnedBy } from "../is-owned-by.ts";
import { joinMessages } from "../join-messages.ts";
import type { ResponseView } from "../view.ts";

/** Deletes a response that is its owner's and has not expired, with its leaf. */
export function deleteResponse(
  view: ResponseView,
  { owner, id, at, leaf }: Parameters<ResponseRepository["delete"]>[0],
): Decision<boolean> {
  const { organizationId } = owner;
  const response = view.response(organizationId, id);
  if (!response || !isOwnedBy(owner, response) || response.expiresAt <= at) return unchanged(false);
  const change = removeResponses(view, [{ organizationId, id }]);
  return { result: true, change: [...change, { write: "insert leaf", row: leaf }] };
}

/** Removes responses that have expired, oldest expiry first; says how many. */
export function sweepResponses(
  view: ResponseView,
  { at, limit }: Parameters<ResponseRepository["sweep"]>[0],
): Decision<number> {
  const expired = view.expiredResponses(at, limit);
  return { result: expired.length, change: removeResponses(view, expired) };
}

/**
 * Removes responses. What the remaining ones were built on moves into those that follow directly, once for all that
 * are removed, so that removing much of a chain does not copy its beginning again and again.
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

/** Moves what a response was built on into it, up to the first that remains. */
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
