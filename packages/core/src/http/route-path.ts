/** What a route never holds: empty or dot segments, parameters, backslashes, an empty end. Nothing is decoded or repaired. */
const irregular = /\/\/|;|\\|\/\.{1,2}(?:\/|$)|\/$/;

/**
 * What follows the last `/v1/` of a URL's path, as it is written: `chat/completions`. Null when the path has no
 * `/v1/`, nothing after it, or a form that two readers could understand differently.
 */
export function routePath(url: string): string | null {
  const path = pathOf(url);
  const version = path.lastIndexOf("/v1/");
  return version < 0 || irregular.test(path) ? null : path.slice(version + "/v1/".length);
}

/** The parameters of a URL, which may begin at its path. */
export function queryOf(url: string): URLSearchParams {
  const [whole = ""] = url.split("#", 1);
  const start = whole.indexOf("?");
  return new URLSearchParams(start < 0 ? "" : whole.slice(start));
}

function pathOf(url: string): string {
  const end = url.search(/[?#]/);
  const whole = end < 0 ? url : url.slice(0, end);
  const scheme = whole.startsWith("/") ? -1 : whole.indexOf("://");
  return scheme < 0 ? whole : whole.slice(Math.max(0, whole.indexOf("/", scheme + 3)));
}
