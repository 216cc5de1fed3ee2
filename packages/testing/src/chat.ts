/** The fields of a chat completion request. You can add any other field, valid or not. */
export interface ChatFields {
  /** Default `test/tollgate/scripted`. */
  readonly model?: unknown;
  /** Default: one user message. */
  readonly messages?: unknown;
  readonly [field: string]: unknown;
}

/** Creates a signed request to `POST /v1/chat/completions`. Fields that are `undefined` are left out. */
export type Chat = (fields?: ChatFields, headers?: Readonly<Record<string, string>>) => Request;

/** The model of requests without a `model`. */
export const testModel = "tollgate/scripted";

/** Creates requests signed with a secret. The defaults make a complete request. */
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
