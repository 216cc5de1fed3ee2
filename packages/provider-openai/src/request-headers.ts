import { secretHeaders } from "@tollgate/core/provider";

/** The headers of one call, and the values in them that are secret. */
export interface SentHeaders {
  readonly headers: Readonly<Record<string, string>>;
  readonly secrets: readonly string[];
}

/** The headers of each call but its credential: an allowlist, and nothing in it comes from a caller's request. */
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

/** Most calls have the credential of the one before. */
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
