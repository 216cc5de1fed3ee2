import { secretHeaders } from "@tollgate/core/provider";
import type { SentHeaders } from "./dialect.ts";

/** The headers in which a provider's protocol differs. */
export interface HeaderFormat {
  /** The header that carries a credential. */
  credential(value: string): Readonly<Record<string, string>>;
  /** Headers of every call. They take precedence over the configured ones. */
  readonly own?: Readonly<Record<string, string>>;
}

/** Creates the headers of calls. They are an allowlist: no header comes from a caller's request. */
export function createRequestHeaders(
  configured: Readonly<Record<string, string>> = {},
  format: HeaderFormat = bearer,
): (credential: string | null, stream: boolean) => SentHeaders {
  const lowered = Object.entries(configured).map(([name, value]) => [name.toLowerCase(), value]);
  const common = {
    "user-agent": "tollgate",
    ...Object.fromEntries(lowered),
    ...format.own,
    "content-type": "application/json",
    "accept-encoding": "identity",
  };
  const plain = cacheLast({ ...common, accept: "application/json" }, format);
  const streamed = cacheLast({ ...common, accept: "text/event-stream, application/json" }, format);
  return (credential, stream) => (stream ? streamed : plain)(credential);
}

const bearer: HeaderFormat = { credential: (value) => ({ authorization: `Bearer ${value}` }) };

/** Caches the last headers: most calls have the same credential as the previous one. */
function cacheLast(
  common: Readonly<Record<string, string>>,
  format: HeaderFormat,
): (credential: string | null) => SentHeaders {
  let last: { readonly credential: string | null; readonly sent: SentHeaders } | null = null;
  return (credential) => {
    if (last === null || last.credential !== credential) {
      const headers =
        credential === null ? common : { ...common, ...format.credential(credential) };
      last = { credential, sent: { headers, secrets: secretHeaders(headers) } };
    }
    return last.sent;
  };
}
