/** The text that `serve` prints once it listens: its address, its key, and a call to try. */
export function announcement({
  url,
  secret,
  sim,
}: {
  readonly url: string;
  /** The key just made; null when there are keys already. */
  readonly secret: string | null;
  /** Whether the built-in gateway is there to be tried. */
  readonly sim: boolean;
}): string {
  const key =
    secret === null
      ? "API keys already exist. Put one in TOLLGATE_KEY, or create another:\n\n" +
        "  tollgate keys create --organization default --user default --label laptop"
      : `Created an API key for organization "default". It is shown only once:\n\n  ${secret}`;
  const bearer = `-H "Authorization: Bearer ${secret ?? "$TOLLGATE_KEY"}"`;
  const command = sim ? tryChat(url, bearer) : `  curl -fsS ${url}/v1/models ${bearer}`;
  return `Tollgate listens on ${url}\n\n${key}\n\nTry it:\n\n${command}\n`;
}

function tryChat(url: string, bearer: string): string {
  const body = JSON.stringify({
    model: "sim/tollgate/echo",
    messages: [{ role: "user", content: "Hello" }],
  });
  return [
    `  curl -fsS ${url}/v1/chat/completions \\`,
    `    ${bearer} -H "Content-Type: application/json" \\`,
    `    -d '${body}'`,
  ].join("\n");
}
