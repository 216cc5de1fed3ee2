import type {
  ClaimIntent,
  EarlierClaim,
  KeptAnswer,
  ResponseDraft,
  SessionMatch,
} from "../contracts/step-verbs.ts";
import type { Caller } from "../domain/caller.ts";
import type { ClientSignal } from "../domain/client-signal.ts";
import type { Completion } from "../domain/completion.ts";
import type { CompletionEvent, FinishReason } from "../domain/completion-event.ts";
import type { CompletionRequest } from "../domain/completion-request.ts";
import type { EmbeddingRequest } from "../domain/embedding.ts";
import type { Message } from "../domain/message.ts";
import type { DroppedFields, EndpointName } from "../domain/step.ts";
import type { Usage } from "../domain/usage.ts";
import type { Ticket } from "../limits/admission.ts";
import type { SlotShare } from "../limits/slots.ts";
import type { CachedConversation } from "../sessions/conversation-cache.ts";
import type { StateSeal } from "../sessions/state-seal.ts";
import type { TranscriptChain } from "../sessions/transcript-chain.ts";
import type { TargetSelection } from "./choose-target.ts";

/** A request as the line receives it, whatever its protocol. */
export interface GovernedCall {
  /** The answer's `x-request-id`. */
  readonly requestId: string;
  readonly caller: Caller;
  readonly endpoint: EndpointName;
  readonly stream: boolean;
  /** Whether its end repeats the whole answer, with log probabilities: as a body, in an event, or as a stored response. */
  readonly repeatsAnswer: boolean;
  /** The model id as it was sent. */
  readonly model: string;
  /** The data class header's value; null without one. */
  readonly dataClass: string | null;
  readonly sessionId: string | null;
  readonly turnId: string | null;
  /** The claim on its idempotency key; null without one. */
  readonly claim: ClaimIntent | null;
  /** Whether an SDK sent it as a retry, without an idempotency key. */
  readonly isRetry: boolean;
  /** Fields of the history that are neither sent upstream nor kept, counted by name. */
  readonly droppedFields: DroppedFields;
  /** Aborts when the client leaves. */
  readonly signal: ClientSignal;
  /**
   * Finds everything the request refers to, and takes room for the stored content that it finds. Called once, after the model
   * and the named ids are found valid.
   */
  readonly prepare: (room: Pick<Ticket, "grow">) => PreparedRequest | Promise<PreparedRequest>;
}

/** The request for the model, and the part of it that belongs to the Session. */
export interface PreparedRequest {
  readonly request: CompletionRequest;
  /**
   * The embeddings request. Absent for a conversation. A call with it has no messages, and belongs to no Session and no
   * Turn.
   */
  readonly embedding?: EmbeddingRequest | undefined;
  /** The messages that take part in the transcript chain. */
  readonly transcript: readonly Message[];
  /** Instructions for this request alone: recorded on its Step, but not part of the chain. */
  readonly instructions: string | null;
  /** The data class of the stored content that the request refers to; null for none. */
  readonly referredClass: string | null;
  /** The Session of the response that the request continues; null for none. */
  readonly previousSessionId: string | null;
  /** How many of the transcript's first messages come from stored responses. */
  readonly storedMessages: number;
  /** The results of an earlier request for the transcript's first messages; null for none. */
  readonly known: KnownBeginning | null;
  /** Keeps this request's results once its Step is open; null to keep nothing. */
  readonly remember: ((found: KnownBeginning) => void) | null;
  /**
   * Determines what a completed answer leaves behind. Called once, before its settlement, which waits for it. `withState`
   * adds provider state to a reply, if the policy keeps content.
   */
  readonly conclude: (
    answer: AnswerHead,
    settled: SettledAnswer,
    withState: (reply: readonly Message[]) => readonly Message[],
  ) => Conclusion | Promise<Conclusion>;
}

/** Results that can be reused if a transcript begins with the same messages. */
export type KnownBeginning = Pick<CachedConversation<unknown>, "chain" | "sent">;

/** A call whose messages carry the provider state to send with them. */
export type PreparedCall = GovernedCall &
  PreparedRequest & {
    readonly state: ConversationState;
    /** The targets of a virtual model or an alias; absent if the client named the model itself. */
    readonly selection?: TargetSelection;
  };

/** Where the state of a call's messages came from. */
interface ConversationState {
  readonly seal: StateSeal;
  /** Provider state from the client that was dropped because it isn't sealed for its key, counted by name. */
  readonly dropped: DroppedFields;
  /** Messages whose state comes from the gateway's records instead of this request. */
  readonly restored: ReadonlySet<Message>;
  /** The Session that the call continues; absent if no look-up was needed. */
  readonly continued?: {
    readonly chain: TranscriptChain;
    readonly session: SessionMatch | null;
  };
}

/** The records that a completed answer leaves behind. */
interface Conclusion {
  /** The messages that the client will send back as history. */
  readonly reply: readonly Message[];
  /** The response to store with the settlement; null for none. */
  readonly response: ResponseDraft | null;
}

/** The facts about an answer that are known when its Step opens. */
export interface AnswerHead {
  readonly stepId: string;
  /** Both null for a call without Session and Turn. */
  readonly sessionId: string | null;
  readonly turnId: string | null;
  readonly decisionId: string;
  readonly dataClass: string;
  /** Milliseconds since the epoch. */
  readonly openedAt: number;
  /** The headers that show the amounts left of rate limits; null if no rate limit applies. */
  readonly rateLimits: Readonly<Record<string, string>> | null;
}

/**
 * Receives the visible events of an answer. Returns null if it can take more at once; otherwise a promise, and the provider
 * is not read until it resolves. Rejects events that can't be written as JSON, which counts as the provider's fault.
 */
export type TakeEvents = (events: readonly CompletionEvent[]) => Promise<void> | null;

/**
 * Reads an answer. `completed` or `failed` is called once, or `left`, after which the end may still be reported. They must not
 * throw.
 */
export interface AnswerReader {
  readonly take: TakeEvents;
  /**
   * The whole answer as the client gets it, for repeats of the request; null if it is too long. Called before the settlement,
   * and only if the answer is kept.
   */
  keep(settled: SettledAnswer): PresentedAnswer | null;
  /** The settlement is durable. Only now may the answer be marked as complete. */
  completed(settled: SettledAnswer): void;
  /** The answer failed. Its Step is settled as far as possible. */
  failed(error: Error): void;
  /** The client left, so nobody reads the rest. An answer that is kept is still passed on. */
  left(): void;
}

/** A whole answer as the client gets it. */
export type PresentedAnswer = Omit<KeptAnswer, "model">;

/** The answer of an open Step. */
export interface GovernedAnswer extends AnswerHead {
  /** Asks the provider and passes events and the end to the reader. Call it once. */
  readonly read: (reader: AnswerReader) => void;
  /** Aborts when the client leaves. */
  readonly signal: ClientSignal;
  /** The configuration that the provider reports; empty before the answer begins, or if it reports none. */
  readonly systemFingerprint: () => string;
  /** The canonical id of the model that answers; null before its first output. */
  readonly servedBy: () => string | null;
  /** The tokens of its input, as the provider reported them so far, otherwise as estimated. Without any output. */
  readonly inputSoFar: () => Usage;
  /** Room for a copy of the answer, in bytes, for repeats of the request; null if it isn't kept. */
  readonly copyRoom: SlotShare | null;
  /** The client left. Ends the provider's call or reads it to its end, as configured. */
  readonly abandon: () => void;
}

/** The kept answer of an earlier Step, for a request that repeats another. */
export interface ReplayedAnswer extends Pick<EarlierClaim, "stepId" | "decisionId" | "dataClass"> {
  readonly replayed: KeptAnswer;
}

/** A completed and recorded answer. */
export interface SettledAnswer {
  /** As the client may see it: state that only the provider can read is sealed. */
  readonly completion: Completion;
  /** All state of the answer as one sealed text; null for none. */
  readonly sealedState: () => string | null;
  readonly finishReason: FinishReason;
  readonly usage: Usage;
  /** Milliseconds since the epoch. */
  readonly settledAt: number;
}
