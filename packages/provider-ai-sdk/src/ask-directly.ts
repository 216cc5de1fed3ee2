import { hash } from "node:crypto";
import type { Clock, CompletionEvent } from "@tollgate/core/provider";
import { ask, callOptions, type Question } from "./ask.ts";
import { languageModel } from "./language-model.ts";
import type { AiSdkModel, AiSdkProvider } from "./options.ts";
import { readAnswer } from "./read-answer.ts";

export interface DirectCall {
  readonly name: string;
  readonly question: Question;
  readonly clock: Clock;
}

/** A call whose request is not ours to see: it is known by the name of the AI SDK's provider and by its options. */
export async function* askDirectly(
  source: AiSdkProvider | AiSdkModel,
  { name, question, clock }: DirectCall,
): AsyncGenerator<readonly CompletionEvent[], void, undefined> {
  const { signal, stream } = question;
  const model = languageModel(source, name);
  const { abortSignal: _, ...options } = callOptions(question);
  const bodySha256 = hash("sha256", JSON.stringify({ model: name, stream, ...options }));
  yield [{ type: "request-sent", host: model.provider, bodySha256 }];
  signal.throwIfAborted();
  yield* readAnswer(ask(model, question), { signal, clock });
}
