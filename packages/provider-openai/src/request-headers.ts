import { secretHeaders } from "@tollgate/core/provider";

/** The headers of one call, and their secret values. */
export interface SentHeaders {
  readonly headers: Readonly<Record<string, string>>;
  readonly secrets: readonly string[];
}

/** Creates the headers of calls. They are an allowlist: no header comes from a caller's request. */
export function createRequestHeaders(
  configured: Readonly<Record<string, string>> = {},
): (credential: string | null, stream: boolean) => SentHeaders {
  const lowered = Object.entries(configured).map(([name, value]) => [name.toLowerCase(), value]);
  const common = {
    "user-agent": "tollgate",
    ...Object.fromEntries(lowered),
    "content-type": "application/json",
    "accept-encoding": "identity",
  };
  const plain = cacheLast({ ...common, accept: "application/json" });
  const streamed = cacheLast({ ...common, accept: "text/event-stream, application/json" });
  return (credential, stream) => (stream ? streamed : plain)(credential);
}

/** Caches the last headers: most calls have the same credential as the previous one. */
function cacheLast(
  common: Readonly<Record<string, string>>,
): (credential: string | null) => SentHeaders {
  let last: { readonly credential: string | null; readonly sent: SentHeaders } | null = null;
  return (credential) => {
    if (last === null || last.credential !== credential) {
      const headers =
        credential === null ? common : { ...common, authorization: `Bearer ${credential}` };
      last = { credential, sent: { headers, secrets: secretHeaders(headers) } };
    }
    return last.sent;
  };
}
