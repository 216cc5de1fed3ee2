/** Connections, event streams, options and error mapping of the HTTP providers. */
export {
  exactJson,
  isList,
  isObject,
  itemsOf,
  type JsonObject,
  labelOf,
  membersOf,
  textOf,
  tierIn,
  tokenCount,
} from "./answer-json.ts";
export { type BodyFormat, createBodyWriter } from "./body-writer.ts";
export {
  baseUrlSchema,
  type HttpOptions,
  httpOptions,
  httpRules,
  isCredential,
} from "./configuration.ts";
export type * from "./dialect.ts";
export { errorEvent, errorIn } from "./error-answer.ts";
export { invalidAnswer, invalidEvent } from "./failures.ts";
export {
  type EmbeddingDialect,
  type HttpUpstream,
  httpProvider,
  type TokenCounting,
} from "./http-provider.ts";
export { createRequestHeaders, type HeaderFormat } from "./request-headers.ts";
