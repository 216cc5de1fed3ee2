import {
  APICallError,
  InvalidArgumentError,
  InvalidPromptError,
  LoadAPIKeyError,
  LoadSettingError,
  NoSuchModelError,
  UnsupportedFunctionalityError,
} from "@ai-sdk/provider";
import { ProviderError } from "@tollgate/core/provider";
import { invalidAnswer, notSent, rejected, transportFailure } from "./failures.ts";
import { statusFailure } from "./upstream-error.ts";

/** Converts an error of the AI SDK to a ProviderError without the upstream's own text. */
export function failureOf(
  thrown: unknown,
  { sent, now }: { readonly sent: boolean; readonly now: number },
): ProviderError {
  if (thrown instanceof ProviderError) return thrown;
  if (APICallError.isInstance(thrown) && (thrown.statusCode ?? 0) >= 300) {
    const { statusCode = 0, responseHeaders = {}, data } = thrown;
    return statusFailure({ status: statusCode, headers: responseHeaders, body: data }, now);
  }
  return (
    transportFailure(thrown) ??
    (sent
      ? invalidAnswer("invalid_answer", "The provider's answer contains no completion.")
      : beforeSending(thrown))
  );
}

function beforeSending(thrown: unknown): ProviderError {
  if (NoSuchModelError.isInstance(thrown))
    return rejected("The provider has no such language model.", { status: 404, param: "model" });
  if (
    UnsupportedFunctionalityError.isInstance(thrown) ||
    InvalidPromptError.isInstance(thrown) ||
    InvalidArgumentError.isInstance(thrown)
  )
    return rejected("The provider's model doesn't support this request.");
  if (LoadAPIKeyError.isInstance(thrown))
    return notSent("credential_unavailable", "The provider's credential could not be read.");
  if (LoadSettingError.isInstance(thrown))
    return notSent("misconfigured", "The provider is not configured correctly.");
  return notSent("not_asked", "The provider failed before it sent the request.");
}
