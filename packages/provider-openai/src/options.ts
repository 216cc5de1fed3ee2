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
  /** The URL above `/chat/completions`, such as `https://api.example.com/v1`: http or https, without user, query or fragment. */
  readonly baseURL: string;
  /**
   * The platform's credential: a string, a function that Tollgate calls before every call, or null for an upstream
   * without keys. `undefined` is rejected: it usually means a missing environment variable. Omit it for customer connections.
   */
  readonly apiKey?: string | (() => string | Promise<string>) | null | undefined;
  /** Whose account pays. Default `platform`. `customer` sends each organization's own credential. */
  readonly connection?: ConnectionOwnership;
  /**
   * Whether `GET /v1/models` may show the upstream's own list if neither `models` nor the prices name any model. Tollgate
   * asks for it with the platform's credential, so customer connections don't support it. Default false.
   */
  readonly listModels?: boolean;
  /** Additional headers for every call. */
  readonly headers?: Readonly<Record<string, string>>;
  /** The request field for the output limit. Default `max_completion_tokens`. */
  readonly maxTokensField?: RequestDialect["maxTokensField"];
  /** The role for `developer` messages. Default `developer`. */
  readonly developerRole?: RequestDialect["developerRole"];
  /** Whether to send the request's `store` and `metadata` to the upstream. Default false: the gateway keeps transcripts itself. */
  readonly forwardStore?: boolean;
  /** How calls are billed. Default: by the price table only. */
  readonly billing?: Billing;
  /** The source of time. Default: the machine's clock. */
  readonly clock?: Clock;
}
