import { type ProviderCall, ProviderError } from "../contracts/provider.ts";
import type { CompletionEvent } from "../domain/completion-event.ts";
import type { Line } from "./line.ts";
import type { Run } from "./run.ts";

/** Asks the provider of the running attempt, on the platform's account or the organization's own. */
export function callProvider(line: Line, run: Run): AsyncIterable<readonly CompletionEvent[]> {
  const { provider, connection } = run.attempt.candidate.decided.route;
  return connection === "customer"
    ? callWithCredential(line, run)
    : provider.complete(callOf(line, run, null));
}

/** Each attempt opens the credential for itself; after a failure it may be another one by now. */
async function* callWithCredential(
  line: Line,
  run: Run,
): AsyncGenerator<readonly CompletionEvent[]> {
  const { candidate, controller } = run.attempt;
  const { provider, model } = candidate.decided.route;
  const { organizationId } = run.opened.owner;
  const owner = { organizationId, gateway: model.gateway };
  const fresh = candidate.attempt.number > 1;
  const credential = await line.credentials.open(owner, { fresh });
  controller.signal.throwIfAborted();
  try {
    yield* provider.complete(callOf(line, run, credential));
  } catch (thrown) {
    throw thrown instanceof ProviderError ? thrown.hide([credential]) : thrown;
  }
}

function callOf(line: Line, run: Run, credential: string | null): ProviderCall {
  const { candidate, controller } = run.attempt;
  const { model, upstreamName } = candidate.decided.route;
  return {
    model: `${model.vendor}/${model.model}`,
    upstreamName,
    request: candidate.request,
    stream: run.call.stream,
    credential,
    signal: controller.signal,
    limits: {
      eventBytes: line.limits.upstreamEventBytes,
      totalBytes: line.limits.upstreamBytes,
      bodyBytes: 2 * line.limits.answerBytes,
    },
  };
}
