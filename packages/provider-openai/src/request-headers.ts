/** The headers of each call but its credential: an allowlist, and nothing in it comes from a caller's request. */
export function createRequestHeaders(
  configured: Readonly<Record<string, string>> = {},
): (credential: string | null, stream: boolean) => Readonly<Record<string, string>> {
  const lowered = Object.entries(configured).map(([name, value]) => [name.toLowerCase(), value]);
  const same = {
    "user-agent": "tollgate",
    ...Object.fromEntries(lowered),
    "content-type": "application/json",
    "accept-encoding": "identity",
  };
  const plain = { ...same, accept: "application/json" };
  const streamed = { ...same, accept: "text/event-stream, application/json" };

  return (credential, stream) => {
    const headers = stream ? streamed : plain;
    return credential === null ? headers : { ...headers, authorization: `Bearer ${credential}` };
  };
}
