import type { FinishReason, Provider, UsageReport } from "@tollgate/core/provider";

/** An answer as the upstream sends it, in the provider's native format. */
export interface NativeAnswer {
  readonly status: number;
  readonly contentType: string;
  readonly body: string;
}

/** The same answer streamed and whole, and what both mean. */
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

/** What a provider's upstream says, by occasion. */
export interface ProviderFixtures {
  /** Text with characters of two, three and four bytes, and usage. */
  readonly text: AnswerFixture;
  /** One call of a tool, its arguments in more than one piece where it is streamed. */
  readonly toolCall: AnswerFixture;
  /** A stream with text that ends, as far as its connection goes, well, but before the model said why it stopped. */
  readonly cut: NativeAnswer;
  /** A stream with text, and then an error in place of its end. Holds `canary` in the error's text. */
  readonly failing: NativeAnswer;
  /** An answer with an error status that can be tried again. Holds `canary` in the error's text. */
  readonly error: NativeAnswer;
}

/** A provider whose upstream is at `url`. */
export type CreateProvider = (upstream: {
  readonly url: string;
  readonly connection: "platform" | "customer";
  /** The credential of a platform connection; on a customer-owned one every call brings its own. */
  readonly credential: string;
}) => Provider;

/** A word that fixtures put into an upstream's own text, and that no error may repeat. */
export const canary = "canary-of-the-upstream";
