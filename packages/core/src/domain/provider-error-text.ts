/** How many bytes of a provider's error text are kept: 2 KiB. */
const maxBytes = 2_048;

/** How many characters of it are read. */
const maxReadLength = 16_384;

const removed = "[removed]";

/**
 * Returns the part of an upstream's error text that may be kept: its message, at most 2 KiB, on one line, without control
 * characters or secrets. Null if there is none. `upstreamError` is the error response's body, as JSON or text. `secrets` are the
 * credentials that the call used: no 8 consecutive characters of one remain. Anything that looks like a key, a bearer token
 * or a password in an address is removed as well.
 */
export function errorText(upstreamError: unknown, secrets: readonly string[] = []): string | null {
  const text = messageOf(upstreamError)
    .slice(0, maxReadLength + 1)
    .toWellFormed();
  const line = text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, " ");
  const whole = text.length > maxReadLength ? withoutLastWord(line) : line;
  const unsent = withoutSecrets(whole, secrets);
  const safe = withoutKeys(withoutMembers(withoutUserInfo(unsent)))
    .replace(/ {2,}/g, " ")
    .trim();
  return safe === "" ? null : cut(safe);
}

/** Whether a text contains 8 consecutive characters of a secret. */
export function quotesSecret(text: string, secrets: readonly string[]): boolean {
  return withoutSecrets(text, secrets) !== text;
}

function withoutSecrets(text: string, secrets: readonly string[]): string {
  return secrets.flatMap(formsOf).reduce(redactSecret, text);
}

/** The message in a vendor's error body; the body itself if it has none. */
function messageOf(upstreamError: unknown): string {
  if (typeof upstreamError === "string") return upstreamError;
  if (typeof upstreamError !== "object" || upstreamError === null) return "";
  const error = memberOf(upstreamError, "error") ?? upstreamError;
  if (typeof error === "string") return error;
  const message = [memberOf(error, "message"), memberOf(error, "detail")].find(isText);
  // Routers quote their own upstream's answer.
  const raw = memberOf(memberOf(error, "metadata"), "raw");
  const parts = [message ?? asJson(error), isText(raw) ? raw : ""];
  return parts.filter(Boolean).join(": ");
}

function asJson(value: unknown): string {
  try {
    return JSON.stringify(value) ?? "";
  } catch {
    // It is nested too deeply to be written as JSON.
    return "";
  }
}

function memberOf(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null && Object.hasOwn(value, name)
    ? Reflect.get(value, name)
    : undefined;
}

function isText(value: unknown): value is string {
  return typeof value === "string" && value !== "";
}

/** Drops the last word: a secret that is cut off wouldn't be recognized. */
function withoutLastWord(text: string): string {
  let end = text.length;
  while (end > 0 && text[end - 1] !== " ") end--;
  return text.slice(0, end);
}

/** A secret in plain form, and as JSON and addresses encode it. */
function formsOf(secret: string): readonly string[] {
  const quoted = JSON.stringify(secret).slice(1, -1);
  const encoded = encodeURIComponent(secret.toWellFormed());
  return [...new Set([secret, quoted, quoted.replaceAll("/", "\\/"), encoded])];
}

const pieceLength = 8;

/** The shortest text that is treated as a secret, in characters: shorter ones occur in too many words. */
const minSecretLength = 4;

/** Removes any 8 consecutive characters of a secret, because upstreams quote parts of a credential. */
function redactSecret(text: string, secret: string): string {
  if (secret.length < minSecretLength) return text;
  if (secret.length < pieceLength) return text.replaceAll(secret, removed);
  const pieces = new Set<string>();
  for (let at = 0; at + pieceLength <= secret.length; at++)
    pieces.add(secret.slice(at, at + pieceLength));
  const kept: string[] = [];
  let [begin, at] = [0, 0];
  while (at + pieceLength <= text.length) {
    if (!pieces.has(text.slice(at, at + pieceLength))) {
      at++;
      continue;
    }
    let end = at + pieceLength;
    while (end < text.length && pieces.has(text.slice(end - pieceLength + 1, end + 1))) end++;
    kept.push(text.slice(begin, at), removed);
    begin = end;
    at = end;
  }
  kept.push(text.slice(begin));
  return kept.join("");
}

const knownKeyForms =
  /\b(?:sk|pk|rk|tg|tgp|gsk|xai|hf|ghp|gho|ghs|github_pat|glpat|xox[abprs]|nvapi|pplx|fw|csk|key|sess|r8|npm)[-_][\w*-]{8,}|\b(?:AKIA|ASIA|AIza|ya29\.|eyJ)[\w.*-]{8,}/g;
const opaqueRun = /[A-Za-z0-9+=]{24,}/g;
const label =
  /(?:key|token|secret|signature|sig|password|passwd|pwd|authorization|credential|bearer|basic)s?[:=]?$/i;

/** How many words may separate a label from its secret, as in "key provided: x". */
const maxLabelDistance = 2;

/** Removes anything that looks like a secret, by its form or by the words before it. */
function withoutKeys(text: string): string {
  let labelled = 0;
  return text.replace(/[^\s"'`<>,;(){}[\]]+/g, (word) => {
    const shown = withoutForms(word);
    const isNamed = labelled > 0 && isOpaque(word);
    labelled = label.test(word) ? maxLabelDistance : labelled - 1;
    return isNamed ? removed : shown;
  });
}

function withoutForms(word: string): string {
  return word
    .split(/([?&])/)
    .map(withoutNamedValue)
    .join("")
    .replace(knownKeyForms, removed)
    .replace(opaqueRun, (run) => (/\d/.test(run) && /[A-Za-z]/.test(run) ? removed : run));
}

/** Finds `name=value` and `name:value` if the name is that of a secret. */
function withoutNamedValue(part: string): string {
  const at = part.search(/[=:]/);
  const value = part.slice(at + 1);
  if (at < 0 || value === "" || value.startsWith("//") || !label.test(part.slice(0, at)))
    return part;
  return part.slice(0, at + 1) + removed;
}

const member = /(\\?["'])([\w-]{1,64})\1 {0,8}: {0,8}\1([^"'\\]{1,512})/g;

/** Finds members of JSON, and of JSON in a text of JSON, if their name is that of a secret. */
function withoutMembers(text: string): string {
  return text.replace(member, (whole: string, _quote: string, name: string, value: string) =>
    label.test(name) ? whole.slice(0, whole.length - value.length) + removed : whole,
  );
}

/** A password in an address can contain characters that separate words elsewhere. */
function withoutUserInfo(text: string): string {
  return text.replace(/(:\\?\/\\?\/)[^\s/?#"`<>]*@/g, `$1${removed}@`);
}

/** Whether a word is more likely a secret than a word of a sentence. */
function isOpaque(word: string): boolean {
  return (
    word.length >= 8 && ((/\d/.test(word) && /[A-Za-z]/.test(word)) || /\*\*|[a-z][A-Z]/.test(word))
  );
}

/** Cuts to the kept bytes, without splitting a character. */
function cut(text: string): string {
  if (Buffer.byteLength(text) <= maxBytes) return text;
  const bytes = Buffer.from(text).subarray(0, maxBytes - Buffer.byteLength("…"));
  const last = bytes.findLastIndex((byte) => (byte & 0xc0) !== 0x80);
  const lead = bytes[last] ?? 0;
  const width = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  const end = last + width <= bytes.length ? last + width : last;
  return `${bytes.subarray(0, end).toString()}…`;
}

/** The values that can be credentials, by the names of their headers or members, each without its scheme. */
export function secretHeaders(headers: Readonly<Record<string, string>>): readonly string[] {
  return Object.entries(headers)
    .filter(([name]) => /auth|key|token|secret|cookie/i.test(name))
    .flatMap(([name, value]) => (/cookie/i.test(name) ? cookiesIn(value) : [credentialIn(value)]))
    .filter((secret) => secret.length >= minSecretLength);
}

function cookiesIn(value: string): readonly string[] {
  return value.split(";").map((pair) => pair.slice(pair.indexOf("=") + 1).trim());
}

function credentialIn(value: string): string {
  const trimmed = value.trim();
  return trimmed.slice(trimmed.lastIndexOf(" ") + 1);
}
