import { openaiCompatible } from "@tollgate/provider-openai";
import { memoryStore } from "@tollgate/store-memory";
import { sqliteStore } from "@tollgate/store-sqlite";

/** The model that every client uses. It costs one dollar per million input tokens and two per million output tokens. */
export const model = "mock/openai/mini";

/** The user whose keys may open one Step a day. */
export const limitedUser = "limited";

/** A gateway in front of one upstream, on a SQLite file, or in memory. */
export const gatewayOptions = (place: {
  readonly upstream: string;
  readonly database: string | null;
}) => ({
  store: place.database === null ? memoryStore() : sqliteStore({ filename: place.database }),
  providers: {
    mock: openaiCompatible({
      baseURL: `${place.upstream}/v1`,
      apiKey: null,
      models: { "openai/mini": { input: "1", output: "2", maxOutputTokens: 1_000 } },
    }),
  },
  budgets: [
    {
      id: "limited-day",
      scope: { user: limitedUser },
      limit: { requests: 1 },
      period: "day" as const,
      mode: "hard" as const,
    },
  ],
});
