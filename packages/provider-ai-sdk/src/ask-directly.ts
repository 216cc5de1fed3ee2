import { hash } from "node:crypto";
import type { CompletionEvent } from "@tollgate/core/provider";
import { ask, callOptions, type Question } from "./ask.ts";
import { languageModel } from "./language-model.ts";
import type { AiSdkModel, AiSdkProvider } from "./options.ts";
import { readAnswer } from "./read-answer.ts";

/** A call whose request is not ours to see: it is known by the name of the AI SDK's provider and by its options. */
export async function* askDirectly(
  source: AiSdkProvider | AiSdkModel,
  { name, question }: { readonly name: string; readonly question: Question },
): AsyncGenerator<readonly CompletionEvent[], void, undefined> {
  const model = languageModel(source, name);
  const { abortSignal: _, ...options } = callOptions(question);
  const bodySha256 = hash(
    "sha256",
    JSON.stringify({ model: name, stream: question.stream, ...options }),
  );
  yield [{ type: "request-sent", host: model.provider, bodySha256 }];
  question.signal.throwIfAborted();
  yield* readAnswer(ask(model, question), question.signal);
}
