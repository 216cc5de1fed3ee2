import { hash } from "node:crypto";
import type { Clock, CompletionEvent } from "@tollgate/core/provider";
import { languageModel } from "./language-model.ts";
import { callModel, callOptions, type ModelCall } from "./model-call.ts";
import type { AiSdkModel, AiSdkProvider } from "./options.ts";
import { readAnswer } from "./read-answer.ts";

export interface DirectCall {
  readonly name: string;
  readonly modelCall: ModelCall;
  readonly clock: Clock;
}

/** A call whose request is not ours to see: it is known by the name of the AI SDK's provider and by its options. */
export async function* callDirectly(
  source: AiSdkProvider | AiSdkModel,
  { name, modelCall, clock }: DirectCall,
): AsyncGenerator<readonly CompletionEvent[], void, undefined> {
  const { signal, stream } = modelCall;
  const model = languageModel(source, name);
  const { abortSignal: _, ...options } = callOptions(modelCall);
  const bodySha256 = hash("sha256", JSON.stringify({ model: name, stream, ...options }));
  yield [{ type: "request-sent", host: model.provider, bodySha256 }];
  signal.throwIfAborted();
  yield* readAnswer(callModel(model, modelCall), { signal, clock });
}
