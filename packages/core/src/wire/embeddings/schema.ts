import { type EmbeddingRequest, maxDimensions } from "../../domain/embedding.ts";
import { object, optional, renamed, required } from "../fields.ts";
import { listOf } from "../lists.ts";
import {
  type ReadContext,
  type Reader,
  schemaOf,
  withSchema,
  wrongType,
  wrongValue,
} from "../read.ts";
import { content, integer, oneOf, text } from "../scalars.ts";

/** The maximum number of inputs of one request, the same as OpenAI's. */
const maxInputs = 2_048;

/** The maximum number of token ids of one request, the same as OpenAI's. */
export const maxTokenIds = 300_000;

const maxTokenId = 4_294_967_295;

type Inputs = EmbeddingRequest["inputs"];

const inputText: Reader<string> = withSchema(
  (value, path, limits) => {
    const given = content(value, path, limits);
    if (given === "") throw wrongValue("must not be empty", path);
    return given;
  },
  () => ({ type: "string", minLength: 1 }),
);

/** A list can have many numbers, so a path is built only for a wrong one. */
const tokenIds: Reader<readonly number[]> = withSchema(
  (value, path) => {
    if (!Array.isArray(value)) throw wrongType("an array of token ids", value, path);
    if (value.length === 0) throw wrongValue("must have at least 1 item", path);
    if (value.length > maxTokenIds) throw tooManyIds(path);
    const given: readonly unknown[] = value;
    return given.map((id, at) => {
      if (typeof id !== "number" || !Number.isSafeInteger(id))
        throw wrongType("an integer", id, `${path}[${at}]`);
      if (id < 0 || id > maxTokenId)
        throw wrongValue(`must be between 0 and ${maxTokenId}`, `${path}[${at}]`);
      // An id of -0 is sent as 0.
      return Math.abs(id);
    });
  },
  () => ({
    type: "array",
    items: { type: "integer", minimum: 0, maximum: maxTokenId },
    minItems: 1,
    maxItems: maxTokenIds,
  }),
);

const count = { min: 1, max: () => maxInputs };
const texts = listOf(inputText, count);
const lists = listOf(tokenIds, count);

/** One input or a list of them. The first item of an array determines how the others are read. */
const input: Reader<Inputs> = withSchema(
  (value, path, limits) => {
    if (typeof value === "string") return [inputText(value, path, limits)];
    if (!Array.isArray(value)) throw wrongType("a string or an array", value, path);
    return readList(value, path, limits);
  },
  () => ({ anyOf: [inputText, texts, tokenIds, lists].map((read) => schemaOf(read)) }),
);

function readList(value: readonly unknown[], path: string, limits: ReadContext): Inputs {
  const [first] = value;
  if (typeof first === "number") return [tokenIds(value, path, limits)];
  if (!Array.isArray(first)) return texts(value, path, limits);
  const read = lists(value, path, limits);
  if (read.reduce((sum, { length }) => sum + length, 0) > maxTokenIds) throw tooManyIds(path);
  return read;
}

function tooManyIds(path: string): Error {
  return wrongValue(`must have at most ${maxTokenIds} token ids`, path);
}

/** The body of `POST /v1/embeddings`, by its fields. */
export const embeddingsRequest = object({
  model: required(text),
  input: required(input),
  dimensions: optional(integer(1, maxDimensions)),
  encoding_format: renamed("format", optional(oneOf("float", "base64"))),
  user: optional(text),
});
