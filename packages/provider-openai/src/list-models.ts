import type { Json } from "@tollgate/core/provider";
import type { AnswerHead, AnswerReceiver } from "./exchange.ts";
import { invalidAnswer } from "./failures.ts";
import { itemsOf, membersOf, textOf } from "./json.ts";

/** Takes an answer of `GET /models`, and resolves with the names in it. Whatever is no list of them is a ProviderError. */
export class ModelNames implements AnswerReceiver {
  readonly #names = Promise.withResolvers<readonly string[]>();
  readonly #chunks: Uint8Array[] = [];

  get names(): Promise<readonly string[]> {
    return this.#names.promise;
  }

  head({ status }: AnswerHead): void {
    if (status !== 200)
      this.failed(invalidAnswer("no_model_list", "The provider gave no list of models."));
  }

  data(chunks: readonly Uint8Array[]): void {
    this.#chunks.push(...chunks);
  }

  end(): void {
    try {
      this.#names.resolve(namesIn(Buffer.concat(this.#chunks)));
    } catch (thrown) {
      this.failed(thrown);
    }
  }

  failed(thrown: unknown): void {
    this.#names.reject(thrown);
  }
}

function namesIn(bytes: Buffer): readonly string[] {
  return itemsOf(membersOf(parse(bytes))["data"]).flatMap(
    (item) => textOf(membersOf(item)["id"]) ?? [],
  );
}

function parse(bytes: Buffer): Json {
  try {
    return JSON.parse(bytes.toString("utf8"));
  } catch {
    throw invalidAnswer("invalid_json", "The provider's list of models is not JSON.");
  }
}
