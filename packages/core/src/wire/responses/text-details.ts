import type { TextDetails } from "../../domain/completion.ts";
import { isObject, type Json } from "../../kernel/stable-json.ts";

interface TokenLogprob {
  readonly token: string;
  readonly logprob: number;
  /** Empty if the provider gave none. */
  readonly bytes: readonly number[];
}

/** The log probability of one token of a text, and those of the most likely tokens in its place. */
export interface LogProb extends TokenLogprob {
  readonly top_logprobs: readonly TokenLogprob[];
}

/** A source that a text cites. */
export interface UrlCitation {
  readonly type: "url_citation";
  readonly start_index: number;
  readonly end_index: number;
  readonly url: string;
  readonly title: string;
}

/** The details of a text, as responses show them. */
export function shownDetails(details: TextDetails | undefined): {
  readonly annotations: readonly UrlCitation[];
  readonly logprobs: readonly LogProb[];
} {
  return {
    annotations: shownAnnotations(details?.annotations ?? []),
    logprobs: shownLogprobs(details?.logprobs ?? []),
  };
}

/** The log probabilities by token. Entries without a token or a number are omitted. */
export function shownLogprobs(pieces: readonly Json[]): readonly LogProb[] {
  return pieces.flatMap((piece) => listIn(piece, "content").flatMap(logProb));
}

function logProb(entry: Json): LogProb | [] {
  const shown = candidate(entry);
  if (Array.isArray(shown)) return [];
  return { ...shown, top_logprobs: listIn(entry, "top_logprobs").flatMap(candidate) };
}

function candidate(entry: Json): TokenLogprob | [] {
  const token = memberOf(entry, "token");
  const logprob = memberOf(entry, "logprob");
  if (typeof token !== "string" || typeof logprob !== "number") return [];
  const bytes = listIn(entry, "bytes").filter((byte) => typeof byte === "number");
  return { token, logprob, bytes: bytes.filter(Number.isInteger) };
}

/** Web sources, which Chat Completions nests under their type. Other annotations of a provider aren't shown. */
export function shownAnnotations(entries: readonly Json[]): readonly UrlCitation[] {
  return entries.flatMap((entry) => {
    if (memberOf(entry, "type") !== "url_citation") return [];
    const cited = memberOf(entry, "url_citation") ?? entry;
    const url = memberOf(cited, "url");
    if (typeof url !== "string") return [];
    const title = memberOf(cited, "title");
    return {
      type: "url_citation" as const,
      start_index: indexIn(cited, "start_index"),
      end_index: indexIn(cited, "end_index"),
      url: url.toWellFormed(),
      title: typeof title === "string" ? title.toWellFormed() : "",
    };
  });
}

function indexIn(value: Json, name: string): number {
  const index = memberOf(value, name);
  return typeof index === "number" && Number.isInteger(index) ? index : 0;
}

function listIn(value: Json, name: string): readonly Json[] {
  const list = memberOf(value, name);
  return Array.isArray(list) ? list : [];
}

function memberOf(value: Json, name: string): Json | undefined {
  return isObject(value) ? value[name] : undefined;
}
