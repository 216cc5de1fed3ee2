/** The features of a client library in this suite. Each adapter uses the library like its users. */
export interface Client {
  /** One plain call. */
  plain(prompt: string): Promise<Answer>;
  /** One streamed call, read to its end; `onDelta` sees each piece of text as it arrives. */
  streamed(prompt: string, onDelta: (text: string) => void): Promise<Answer>;
  /** A call with the tool `get_weather`, looped by the library or as its documentation loops. */
  withTool(prompt: string, getWeather: (city: string) => string): Promise<string>;
  /** An object of the schema { city: string, degrees: number }. */
  structured(prompt: string): Promise<unknown>;
  /** A question about an image, given as a data URL. */
  aboutImage(prompt: string, image: string): Promise<string>;
  /** Whether an error is the library's own error for an HTTP status. */
  isStatus(error: unknown, status: 401 | 404 | 429): boolean;
}

export interface Answer {
  readonly text: string;
  readonly promptTokens: number | undefined;
  readonly completionTokens: number | undefined;
}

/** The gateway's URL and key for a client. */
export interface Target {
  readonly baseURL: string;
  readonly apiKey: string;
  readonly model: string;
}

export type CreateClient = (target: Target) => Client;

/** The JSON Schema for `structured`. */
export const degreesSchema = {
  type: "object",
  properties: { city: { type: "string" as const }, degrees: { type: "number" as const } },
  required: ["city", "degrees"],
  additionalProperties: false,
};

/** JSON Schema of the arguments of `get_weather`. */
export const citySchema = {
  type: "object",
  properties: { city: { type: "string" as const } },
  required: ["city"],
  additionalProperties: false,
};
