import type { StepContents, StepPart } from "../contracts/repositories.ts";
import type { Store } from "../contracts/store.ts";
import type { Message, SystemMessage } from "../domain/message.ts";
import type { Step } from "../domain/step.ts";
import { meet } from "../pipeline/obligations.ts";

/** The recorded content of one Step. */
export interface StepContent {
  readonly id: string;
  /** Null for a Step without a Session, whose content Tollgate never keeps. */
  readonly sessionId: string | null;
  /** How the Step ended. Unless it is `completed`, `answer` is partial. */
  readonly outcome: NonNullable<Step["outcome"]> | "open";
  /**
   * The `instructions` of a Responses request, otherwise the system and developer messages at the start of the
   * conversation, separated by blank lines.
   */
  readonly instructions: string | null;
  /** The messages of the request that were new to its Session. */
  readonly input: readonly Message[] | null;
  /** The answer shown to the client. If the client left and Tollgate kept reading, everything that arrived. */
  readonly answer: readonly Message[] | null;
  /** The reasoning that the client was shown. */
  readonly reasoning: string | null;
  /** Why a part is null. */
  readonly missing: Partial<Readonly<Record<StepContentPart, MissingContent>>>;
}

/** A part of a Step's content. */
export type StepContentPart = "instructions" | "input" | "answer" | "reasoning";

/**
 * Why a part is null: the Step has none or belongs to no Session (`none`), the Step is still open (`open`), its policy keeps
 * only digests (`digest`), or retention erased the transcript (`erased`).
 */
export type MissingContent = "none" | "open" | "digest" | "erased";

/** Reads the content of a Step; null if the Step no longer exists. */
export async function readStepContent(store: Store, step: Step): Promise<StepContent | null> {
  const contents = await store.steps.contents(step.organizationId, step.id);
  if (contents === null) return null;
  const why = await reasonsOf(store, step, contents);
  const instructions = await instructionsOf(store, step, contents);
  const parts = {
    instructions: instructions.text,
    input: messagesIn(contents.request),
    answer: messagesIn(contents.reply),
    reasoning: textIn(contents.reasoning),
  };
  const reasons = {
    instructions: instructions.why ?? why("instructions"),
    input: why("request"),
    answer: why("reply"),
    reasoning: why("reasoning"),
  };
  const isMissing = new Set(
    Object.entries(parts).flatMap(([name, content]) => (content === null ? name : [])),
  );
  const missing = Object.fromEntries(
    Object.entries(reasons).filter(([name]) => isMissing.has(name)),
  );
  return {
    id: step.id,
    sessionId: step.sessionId,
    outcome: step.outcome ?? "open",
    ...parts,
    missing,
  };
}

/** Says why a part is missing. A fallback's answer is kept only if its own decision and the first one both allow it. */
async function reasonsOf(
  store: Store,
  step: Step,
  { withheld }: StepContents,
): Promise<(part: StepPart) => MissingContent> {
  const { decisionId, attempts, outcome } = step;
  const isDigest = await keepsDigests(store, step, decisionId);
  const last = attempts.at(-1)?.decisionId ?? decisionId;
  const answersDigest =
    isDigest || (last !== decisionId && (await keepsDigests(store, step, last)));
  return (part) => {
    const isAnswers = part === "reply" || part === "reasoning";
    if (!withheld.includes(part)) return isAnswers && outcome === null ? "open" : "none";
    return (isAnswers ? answersDigest : isDigest) ? "digest" : "erased";
  };
}

async function keepsDigests(
  store: Store,
  { organizationId }: Step,
  decisionId: string,
): Promise<boolean> {
  const decision = await store.decisions.get(organizationId, decisionId);
  return decision !== null && meet.transcript(decision) === "digest";
}

interface Instructions {
  readonly text: string | null;
  /** Why the start of the conversation, which could include instructions, is missing; null if it isn't. */
  readonly why: MissingContent | null;
}

async function instructionsOf(
  store: Store,
  step: Step,
  { instructions, withheld }: StepContents,
): Promise<Instructions> {
  if (instructions !== null || withheld.includes("instructions"))
    return { text: textIn(instructions), why: null };
  const { organizationId, sessionId } = step;
  if (sessionId === null) return { text: null, why: null };
  const parts = (await store.sessions.transcript(organizationId, sessionId)) ?? [];
  const leading: string[] = [];
  for (const { content, stepId } of parts) {
    const messages = messagesIn(content);
    if (messages === null)
      return { text: joined(leading), why: await whyWithheld(store, step, stepId) };
    for (const message of messages) {
      if (message.role !== "system" && message.role !== "developer")
        return { text: joined(leading), why: null };
      leading.push(textOf(message.content));
    }
  }
  return { text: joined(leading), why: null };
}

async function whyWithheld(store: Store, of: Step, stepId: string): Promise<MissingContent> {
  const step = stepId === of.id ? of : await store.steps.get(of.organizationId, stepId);
  return step && (await keepsDigests(store, step, step.decisionId)) ? "digest" : "erased";
}

function textOf(content: SystemMessage["content"]): string {
  return typeof content === "string" ? content : content.map(({ text }) => text).join("");
}

function joined(texts: readonly string[]): string | null {
  return texts.length === 0 ? null : texts.join("\n\n");
}

function textIn(bytes: Uint8Array | null): string | null {
  return bytes && Buffer.from(bytes).toString();
}

/** Leaves out provider state, which is for the provider only. */
function messagesIn(bytes: Uint8Array | null): readonly Message[] | null {
  const text = textIn(bytes);
  return text === null
    ? null
    : JSON.parse(text, (name, value: unknown) => (name === "state" ? undefined : value));
}
