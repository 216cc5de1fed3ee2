import type {
  Billing,
  Clock,
  ConnectionOwnership,
  ModelOptions,
  StateOptions,
} from "@tollgate/core/provider";
import type { RequestDialect } from "./request-body.ts";

/** How an OpenAI-compatible upstream is reached. */
export interface OpenaiCompatibleOptions extends ModelOptions, StateOptions {
  /** Where `/chat/completions` is found, such as `https://api.example.com/v1`: http or https, no user, query or fragment. */
  readonly baseURL: string;
  /**
   * The platform's credential: a string, a function asked before every call, or null for an upstream without keys.
   * `undefined` is a problem, so that a missing variable of the environment is noticed. Not given on a customer connection.
   */
  readonly apiKey?: string | (() => string | Promise<string>) | null | undefined;
  /** Whose account is used. Default `platform`; `customer` sends each organization's own credential. */
  readonly connection?: ConnectionOwnership;
  /**
   * Whether `GET /v1/models` may show the upstream's own list if neither `models` nor the prices name any model. Tollgate
   * asks for it with the platform's credential, so customer connections don't support it. Default false.
   */
  readonly listModels?: boolean;
  /** Headers sent with every call, besides the provider's own. */
  readonly headers?: Readonly<Record<string, string>>;
  /** The field that caps the answer. Default `max_completion_tokens`. */
  readonly maxTokensField?: RequestDialect["maxTokensField"];
  /** What a `developer` message is sent as. Default `developer`. */
  readonly developerRole?: RequestDialect["developerRole"];
  /** Whether the request's `store` and `metadata` are sent on. Default false: transcripts are kept by the gateway. */
  readonly forwardStore?: boolean;
  /** How calls are billed. Default: by the price table alone. */
  readonly billing?: Billing;
  /** Where time comes from. Default: the machine's clock. */
  readonly clock?: Clock;
}
