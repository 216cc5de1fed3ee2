import type { SessionState } from "../src/index.ts";

/** A Session without a branch, unless `more` says otherwise. */
export function session(
  id: string,
  length: number,
  more: Partial<SessionState> = {},
): SessionState {
  return {
    id,
    organizationId: "acme",
    userId: "ada",
    keyId: "key",
    source: "api",
    head: "",
    length,
    dataClasses: [],
    createdAt: 0,
    updatedAt: 0,
    branchedFromSessionId: null,
    commonLength: 0,
    rootSessionId: null,
    historyFromSessionId: null,
    updated: 0,
    inFlight: false,
    turnId: "turn",
    ...more,
  };
}
