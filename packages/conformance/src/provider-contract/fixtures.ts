import type { FinishReason, Provider, UsageReport } from "@tollgate/core/provider";

/** An answer of the upstream, in the provider's native format. */
export interface NativeAnswer {
  readonly status: number;
  readonly contentType: string;
  readonly body: string;
}

/** An answer as a stream and as one body, and the expected result of both. */
export interface AnswerFixture {
  readonly stream: NativeAnswer;
  readonly plain: NativeAnswer;
  readonly expected: {
    readonly text: string | null;
    readonly toolCalls: readonly { readonly name: string; readonly arguments: string }[];
    readonly usage: UsageReport;
    readonly finishReason: FinishReason;
  };
}

/** The answers of a provider's upstream. */
export interface ProviderFixtures {
  /** Text with characters of two, three and four bytes, and usage. */
  readonly text: AnswerFixture;
  /** One tool call. The stream splits its arguments. */
  readonly toolCall: AnswerFixture;
  /** A stream with text whose connection ends properly, but without a finish reason. */
  readonly cut: NativeAnswer;
  /** A stream with text, then an error instead of its end. The error's text contains `canary`. */
  readonly failing: NativeAnswer;
  /** An answer with a retryable error status. The error's text contains `canary`. */
  readonly error: NativeAnswer;
}

/** A provider whose upstream is at `url`. */
export type CreateProvider = (upstream: {
  readonly url: string;
  readonly connection: "platform" | "customer";
  /** The credential of a platform connection. On a customer-owned connection, every call has its own. */
  readonly credential: string;
}) => Provider;

/** A word that fixtures include in an upstream's text, and that no error may repeat. */
export const canary = "canary-of-the-upstream";
