/** The fields of a chat completion request; any other field, right or wrong, may be given too. */
export interface ChatFields {
  /** Default `test/tollgate/scripted`. */
  readonly model?: unknown;
  /** Default one message of a user. */
  readonly messages?: unknown;
  readonly [field: string]: unknown;
}

/** Makes a signed request to `POST /v1/chat/completions`. A field that is `undefined` is left out. */
export type Chat = (fields?: ChatFields, headers?: Readonly<Record<string, string>>) => Request;

/** The model of requests that name none. */
export const testModel = "tollgate/scripted";

/** Requests signed with a secret; the default of every field makes a complete request. */
export function chatWith(secret: string): Chat {
  return (fields = {}, headers = {}) =>
    new Request("http://in-process/v1/chat/completions", {
      method: "POST",
      headers: {
        "content-type": "application/json",
        authorization: `Bearer ${secret}`,
        ...headers,
      },
      body: JSON.stringify({
        model: `test/${testModel}`,
        messages: [{ role: "user", content: "Hello" }],
        ...fields,
      }),
    });
}
