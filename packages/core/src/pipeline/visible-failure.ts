import { upstreamFailure } from "../attempts/upstream-failure.ts";
import { ProviderError } from "../contracts/provider.ts";
import { type GatewayError, toGatewayError } from "../errors/gateway-error.ts";
import type { Line } from "./line.ts";
import { ClientClosed, failureOf, type Run } from "./run.ts";
import { withDecision } from "./with-decision.ts";

/** What a caller is told of a Step that failed, with the headers of its decision. */
export function visibleFailure(line: Line, run: Run, thrown: unknown): GatewayError {
  const failure = failureOf(run, thrown);
  const error =
    failure instanceof ProviderError && isProviders(run, thrown)
      ? upstreamFailure(failure)
      : toGatewayError(thrown);
  return withDecision(error, line.headerNames, run.opened.answer);
}

/** Whether what was thrown is the provider's failure, and not the store's or our own. */
function isProviders(run: Run, thrown: unknown): boolean {
  return (
    run.stopReason !== null || thrown instanceof ProviderError || thrown instanceof ClientClosed
  );
}
