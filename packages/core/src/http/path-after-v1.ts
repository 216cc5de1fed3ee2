/**
 * Routes never contain empty or dot segments, parameters, backslashes or a trailing slash. Nothing is decoded or repaired.
 */
const irregular = /\/\/|;|\\|\/\.{1,2}(?:\/|$)|\/$/;

/**
 * The part of a URL's path after its last `/v1/`, undecoded: `chat/completions`. Everything after the first `/v1/models/` is
 * the id of a model, which may itself contain `/v1/`. Null if the path has no `/v1/`, ends there, or could be understood in
 * two ways.
 */
export function pathAfterV1(url: string): string | null {
  const path = pathOf(url);
  const model = path.indexOf("/v1/models/");
  return after("/v1/", path, model < 0 ? path.lastIndexOf("/v1/") : model);
}

/** The part of a URL's path after the last occurrence of another mark, such as `/admin/v1/`. */
export function pathAfter(mark: string, url: string): string | null {
  const path = pathOf(url);
  return after(mark, path, path.lastIndexOf(mark));
}

function after(mark: string, path: string, at: number): string | null {
  return at < 0 || irregular.test(path) ? null : path.slice(at + mark.length);
}

/** The query parameters of a URL, which may start with its path. */
export function queryOf(url: string): URLSearchParams {
  const [whole = ""] = url.split("#", 1);
  const start = whole.indexOf("?");
  return new URLSearchParams(start < 0 ? "" : whole.slice(start));
}

function pathOf(url: string): string {
  const end = url.search(/[?#]/);
  const whole = end < 0 ? url : url.slice(0, end);
  const scheme = whole.startsWith("/") ? -1 : whole.indexOf("://");
  if (scheme < 0) return whole;
  const authority = scheme + 3;
  const start = whole.indexOf("/", authority);
  // URL parsers skip the slashes before a host, so a path that follows them would be the host.
  return start === authority ? "" : whole.slice(Math.max(0, start));
}
