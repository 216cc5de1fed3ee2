import type { Caller } from "../domain/caller.ts";
import type { Completion } from "../domain/completion.ts";
import type { CompletionEvent, FinishReason } from "../domain/completion-event.ts";
import type { CompletionRequest } from "../domain/completion-request.ts";
import type { Endpoint } from "../domain/step.ts";
import type { Usage } from "../domain/usage.ts";

/** A request as the line takes it, whatever protocol it came in by. */
export interface GovernedCall {
  readonly caller: Caller;
  readonly endpoint: Endpoint;
  readonly stream: boolean;
  /** The model id as it was sent. */
  readonly model: string;
  readonly request: CompletionRequest;
  /** The data class header's value; null without one. */
  readonly dataClass: string | null;
  readonly sessionId: string | null;
  readonly turnId: string | null;
  /** Aborts when the client leaves. */
  readonly signal: AbortSignal;
}

/** What a Step's answer carries beside its events. */
export interface GovernedAnswer {
  readonly stepId: string;
  readonly sessionId: string;
  readonly turnId: string;
  readonly decisionId: string;
  readonly dataClass: string;
  /** Milliseconds since the epoch. */
  readonly openedAt: number;
  /**
   * The visible events as they arrive. The iteration returns only after the settlement is durable, so whatever marks
   * an answer as complete is written after it. Where it throws, the Step is settled as well.
   */
  readonly events: AsyncGenerator<readonly CompletionEvent[], SettledAnswer>;
  /** The client left: ends the provider's call, or reads it to its end, as configured. */
  readonly abandon: () => void;
}

/** A completed and recorded answer. */
export interface SettledAnswer {
  readonly completion: Completion;
  readonly finishReason: FinishReason;
  readonly usage: Usage;
}
