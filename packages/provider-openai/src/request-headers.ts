/** The allowlist of what travels: nothing here comes from a caller's request. */
export function requestHeaders(
  credential: string | null,
  stream: boolean,
  configured: Readonly<Record<string, string>> = {},
): Readonly<Record<string, string>> {
  const lowered = Object.entries(configured).map(([name, value]) => [name.toLowerCase(), value]);
  return {
    "user-agent": "tollgate",
    ...Object.fromEntries(lowered),
    ...(credential === null ? {} : { authorization: `Bearer ${credential}` }),
    "content-type": "application/json",
    accept: stream ? "text/event-stream, application/json" : "application/json",
    "accept-encoding": "identity",
  };
}
