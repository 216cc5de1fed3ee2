import type { ClaimIntent, EarlierClaim } from "../contracts/step-verbs.ts";
import type { Retention } from "../domain/retention.ts";
import { GatewayError, waitHeaders } from "../errors/gateway-error.ts";
import { sha256Hex, sha256InTurns } from "../kernel/digest.ts";

/** How long a settled claim answers repeats. */
const claimMs = 86_400_000;

/** When a claim settled at a time expires. */
export function claimExpiry(settledAt: number): number {
  return settledAt + claimMs;
}

/**
 * Whether an answer may be kept until its claim expires: no other copy of it is removed before. Its Step takes at most
 * `longest`.
 */
export function keepsAnswers({ responses, transcripts }: Retention, longest: number): boolean {
  const until = claimMs + longest;
  return responses >= until && (transcripts === null || transcripts >= until);
}

/** The most bytes of an answer that are kept. */
export const maxKeptBytes = 1_048_576;

/** The most bytes of running streams that are copied at once for repeats: in a process, and for one API key. */
export const copiedBytes = { max: 64 * maxKeptBytes, maxPerOwner: 8 * maxKeptBytes };

const header = "Idempotency-Key";

/**
 * Rejects a key that isn't 1 to 255 visible ASCII characters. A header that was sent twice contains a space.
 * @throws GatewayError `invalid_value`
 */
export function requireIdempotencyKey(key: string): void {
  if (!/^[\x21-\x7e]{1,255}$/.test(key))
    throw new GatewayError(
      "invalid_value",
      `${header} must be sent once, with 1 to 255 visible ASCII characters and no spaces.`,
      { param: header },
    );
}

/**
 * The claim on an idempotency key. Two requests are the same if their bodies have the same bytes and their sources and data
 * class headers are equal.
 */
export async function claimFor(
  key: string,
  {
    body,
    source,
    dataClass,
  }: {
    readonly body: Uint8Array;
    readonly source: string;
    readonly dataClass: string | null;
  },
): Promise<ClaimIntent> {
  const request = await sha256InTurns(`${JSON.stringify([source, dataClass])}\n`, body);
  return { keySha256: sha256Hex(key), requestSha256: request.toString("hex") };
}

/** Whether an SDK says that it sent the request before. The SDKs of OpenAI count their retries in this header. */
export function isSdkRetry(headers: { get(name: string): string | null }): boolean {
  const count = headers.get("x-stainless-retry-count");
  return count !== null && /^[1-9]\d{0,2}$/.test(count);
}

const minWaitMs = 500;
const maxWaitMs = 10_000;

/** The error for a request whose idempotency key is claimed, unless the answer is kept. */
export function claimedError({ found, openedAt }: EarlierClaim, now: number): GatewayError {
  switch (found) {
    case "mismatch":
      return new GatewayError(
        "idempotency_mismatch",
        `Another request already used this ${header}, with a different body, data class or source. Send a new key with a new request.`,
      );
    case "in_progress":
      // As long as the first request has taken so far, so that the waits grow with it.
      return new GatewayError(
        "idempotency_in_progress",
        `The first request with this ${header} is still running. Repeat the request later to get its answer.`,
        { headers: waitHeaders(Math.max(minWaitMs, Math.min(now - openedAt, maxWaitMs))) },
      );
    case "interrupted":
      return new GatewayError(
        "idempotency_interrupted",
        `The first request with this ${header} was interrupted, and the provider may have completed it. To run it again anyway, send a new key.`,
      );
    default:
      return answerNotKept();
  }
}

/** The error for a repeat of a completed request whose answer isn't kept, or may no longer be given. */
export function answerNotKept(): GatewayError {
  return new GatewayError(
    "idempotency_not_kept",
    `The first request with this ${header} completed, but its answer was not kept. To run it again, send a new key.`,
  );
}
