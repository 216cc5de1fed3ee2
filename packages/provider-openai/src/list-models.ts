import type { Json } from "@tollgate/core/provider";
import type { Exchange } from "./exchange.ts";
import { invalidAnswer } from "./failures.ts";
import { itemsOf, membersOf, textOf } from "./json.ts";

/** The names in an answer of `GET /models`. Whatever is no list of them is a ProviderError. */
export async function readModelNames(exchange: Exchange): Promise<readonly string[]> {
  const { status } = await exchange.head;
  if (status !== 200) throw invalidAnswer("no_model_list", "The provider gave no list of models.");
  const chunks: Uint8Array[] = [];
  for (let read = await exchange.read(); read; read = await exchange.read()) chunks.push(...read);
  return itemsOf(membersOf(parse(Buffer.concat(chunks)))["data"]).flatMap(
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
