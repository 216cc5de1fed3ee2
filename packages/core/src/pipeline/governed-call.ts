import type { ResponseDraft, SessionMatch } from "../contracts/step-verbs.ts";
import type { Caller } from "../domain/caller.ts";
import type { ClientSignal } from "../domain/client-signal.ts";
import type { Completion } from "../domain/completion.ts";
import type { CompletionEvent, FinishReason } from "../domain/completion-event.ts";
import type { CompletionRequest } from "../domain/completion-request.ts";
import type { Message } from "../domain/message.ts";
import type { DroppedFields, EndpointName } from "../domain/step.ts";
import type { Usage } from "../domain/usage.ts";
import type { CachedConversation } from "../sessions/conversation-cache.ts";
import type { StateSeal } from "../sessions/state-seal.ts";
import type { TranscriptChain } from "../sessions/transcript-chain.ts";

/** A request as the line takes it, whatever protocol it came in by. */
export interface GovernedCall {
  readonly caller: Caller;
  readonly endpoint: EndpointName;
  readonly stream: boolean;
  /** The model id as it was sent. */
  readonly model: string;
  /** The data class header's value; null without one. */
  readonly dataClass: string | null;
  readonly sessionId: string | null;
  readonly turnId: string | null;
  /** What its history holds that is neither sent on nor kept. */
  readonly droppedFields: DroppedFields;
  /** Aborts when the client leaves. */
  readonly signal: ClientSignal;
  /** Finds everything the request refers to. Called once, when its model and its named ids are known to be good. */
  readonly prepare: () => PreparedRequest | Promise<PreparedRequest>;
}

/** What is asked of the model, and what of it belongs to the Session. */
export interface PreparedRequest {
  readonly request: CompletionRequest;
  /** The messages that take part in the transcript chain. */
  readonly transcript: readonly Message[];
  /** Instructions for this request alone: recorded on its Step, and no part of the chain. */
  readonly instructions: string | null;
  /** The data class of what the request refers to; null when it refers to nothing stored. */
  readonly referredClass: string | null;
  /** The Session of the response it continues; null for none. */
  readonly previousSessionId: string | null;
  /** How many of the transcript's first messages were read from stored responses. */
  readonly storedMessages: number;
  /** What an earlier request found of the transcript's first messages; null for nothing. */
  readonly known: KnownBeginning | null;
  /** Takes what this request found, once its Step is open; null where it isn't kept. */
  readonly remember: ((found: KnownBeginning) => void) | null;
  /**
   * Says what becomes of a completed answer. Called once, before its settlement, which waits for it. `withState` adds to a reply what its
   * provider wants back, where that is kept.
   */
  readonly conclude: (
    answer: AnswerHead,
    settled: SettledAnswer,
    withState: (reply: readonly Message[]) => readonly Message[],
  ) => Conclusion | Promise<Conclusion>;
}

/** What needs no second look where the beginning of a transcript is the same. */
export type KnownBeginning = Pick<CachedConversation<unknown>, "chain" | "sent">;

/** A call whose messages have the state that they can be sent with. */
export type PreparedCall = GovernedCall & PreparedRequest & { readonly state: ConversationState };

/** Where the state of a call's messages came from. */
interface ConversationState {
  readonly seal: StateSeal;
  /** What the client brought that is not sealed for its key, by name. */
  readonly dropped: DroppedFields;
  /** Messages whose state did not come with this request. */
  readonly restored: ReadonlySet<Message>;
  /** What was found of the Session that the call goes on with; absent where nobody had to look. */
  readonly continued?: {
    readonly chain: TranscriptChain;
    readonly session: SessionMatch | null;
  };
}

/** What a completed answer leaves behind. */
interface Conclusion {
  /** The messages the client will send back as history. */
  readonly reply: readonly Message[];
  /** The response to store with the settlement; null for none. */
  readonly response: ResponseDraft | null;
}

/** What is known of an answer when its Step opened. */
export interface AnswerHead {
  readonly stepId: string;
  readonly sessionId: string;
  readonly turnId: string;
  readonly decisionId: string;
  readonly dataClass: string;
  /** Milliseconds since the epoch. */
  readonly openedAt: number;
}

/**
 * Takes the visible events of an answer as they arrive. Null where it can take more at once; else the provider is not read
 * on until the promise resolves. Events that cannot be written, since they are no JSON, are a fault of their provider.
 */
export type TakeEvents = (events: readonly CompletionEvent[]) => Promise<void> | null;

/** Who reads an answer. It is told how the answer ended once, and throws nothing then. */
export interface AnswerReader {
  readonly take: TakeEvents;
  /** The settlement is durable: whatever marks an answer as complete is written after it. */
  completed(settled: SettledAnswer): void;
  /** The answer failed, and its Step is settled as far as it can be. */
  failed(error: Error): void;
  /** The client left: nothing more of the answer is for anybody. */
  left(): void;
}

/** What a Step's answer carries with its head: its events. */
export interface GovernedAnswer extends AnswerHead {
  /** Asks the provider, and tells the reader what comes and how it ended. Call it once. */
  readonly read: (reader: AnswerReader) => void;
  /** Aborts when the client leaves; what is read on then is for nobody. */
  readonly signal: ClientSignal;
  /** The configuration that the provider says it answers with; null before it began, and where it says none. */
  readonly systemFingerprint: () => string | null;
  /** The canonical id of the model that answers; null before anything of its answer was seen. */
  readonly servedBy: () => string | null;
  /** The client left: ends the provider's call, or reads it to its end, as configured. */
  readonly abandon: () => void;
}

/** A completed and recorded answer. */
export interface SettledAnswer {
  /** As the client may see it: what only the provider can read is sealed. */
  readonly completion: Completion;
  /** All state of the answer as one sealed text; null where there is none. */
  readonly sealedState: () => string | null;
  readonly finishReason: FinishReason;
  readonly usage: Usage;
  /** Milliseconds since the epoch. */
  readonly settledAt: number;
}
