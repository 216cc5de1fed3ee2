import { type Problem, pathOf, problemAt } from "@tollgate/core/schemas";

/** Shorter values appear in too many words and paths. They are hidden only as whole words. */
const minLength = 8;
const minWordLength = 4;

const word = /[^\s`"',;:.()[\]]+/g;

/** Hides the secrets of a file in texts about it. */
export interface Hidden {
  /** The text with each variable's value replaced by its name, and each credential by `[hidden]`. */
  readonly in: (text: string) => string;
}

/** The number of characters of a long name in paths. */
const shownOfNames = 64;

/** Hides the credentials in data, anything that looks like one, and the values of variables. */
export function hideCredentials(data: unknown, used: ReadonlyMap<string, string>): Hidden {
  const replacements = new Map<string, string>();
  const words = new Map<string, string>();
  const hideWords = (text: string): string =>
    text.replace(word, (found) => words.get(found) ?? found);
  const add = (value: string, replacement: string): void => {
    const quoted = JSON.stringify(value).slice(1, -1);
    const cut = value.slice(0, shownOfNames);
    for (const form of [value, cut, quoted, encodeURIComponent(value.toWellFormed())])
      if (form.length >= minLength && !replacements.has(form)) replacements.set(form, replacement);
    if (value.length >= minWordLength && value.length < minLength && !words.has(value))
      words.set(value, replacement);
  };
  for (const [name, value] of used) add(value, `\${${name}}`);
  for (const credential of credentialsIn(data)) add(credential, "[hidden]");
  const sorted = [...replacements].sort(([a], [b]) => b.length - a.length);
  return {
    in: (text) =>
      hideWords(
        sorted.reduce(
          (shown, [value, replacement]) => shown.replaceAll(value, () => replacement),
          text,
        ),
      )
        .replace(apiKeys, "$1[hidden]")
        .replace(passwords, "$1[hidden]@"),
  };
}

/** Finds names and values with a credential that records, answers and logs would show. */
export function shownCredentials(data: unknown): readonly Problem[] {
  const credentials = credentialsIn(data).filter((credential) => credential.length >= 16);
  return textsIn(data)
    .filter(
      ({ text }) =>
        looksLikeCredential(text) || credentials.some((credential) => text.includes(credential)),
    )
    .map(({ keys }) =>
      problemAt(
        pathOf("", keys),
        "contains a credential where records and logs show it: move it to apiKey, headers, secrets.keys, evidence.privateKey or store.url",
      ),
    );
}

interface Text {
  readonly keys: readonly PropertyKey[];
  readonly text: string;
}

/** All member names, and all strings outside the places for credentials. */
function textsIn(data: unknown, keys: readonly PropertyKey[] = []): readonly Text[] {
  if (typeof data === "string") return isCredentialPlace(keys) ? [] : [{ keys, text: data }];
  if (typeof data !== "object" || data === null) return [];
  const isList = Array.isArray(data);
  return Object.entries(data).flatMap(([key, value]) => {
    const path = [...keys, isList ? Number(key) : key];
    return [...(isList ? [] : [{ keys: path, text: key }]), ...textsIn(value, path)];
  });
}

function credentialsIn(data: unknown, keys: readonly PropertyKey[] = []): readonly string[] {
  if (typeof data === "string") {
    if (!isCredentialPlace(keys)) return [];
    return keys[0] === "store" ? passwordsOf(data) : [data];
  }
  if (typeof data !== "object" || data === null) return [];
  return Object.entries(data).flatMap(([key, value]) => credentialsIn(value, [...keys, key]));
}

/** `providers.*.apiKey`, `providers.*.headers.*`, `secrets.keys.*`, `evidence.privateKey` and `store.url`. */
function isCredentialPlace([top, second, third, fourth]: readonly PropertyKey[]): boolean {
  if (top === "providers")
    return (
      (third === "apiKey" && fourth === undefined) || (third === "headers" && fourth !== undefined)
    );
  return (
    [top, second].join(".") === "evidence.privateKey" ||
    (top === "secrets" && second === "keys") ||
    (top === "store" && second === "url")
  );
}

function passwordsOf(address: string): readonly string[] {
  if (!URL.canParse(address)) return [address];
  const { password, searchParams } = new URL(address);
  const own = [password, decoded(password), ...searchParams.getAll("password")];
  return [...new Set(own)].filter((one) => one !== "");
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** The key formats of providers and of Tollgate itself. */
const apiKeys =
  /(^|[^A-Za-z0-9])(?:(?:sk|rk|csk|gsk|xai|hf|ghp|tg)[-_](?=[A-Za-z_-]{0,40}\d)[A-Za-z0-9_-]{20,}|AIza[A-Za-z0-9_-]{30,}|AKIA[A-Z0-9]{16,})/g;

/** A password in an address. */
const passwords = /(:\/\/[^/\s@:]{0,255}:)[^/\s@]{1,255}@/g;

function looksLikeCredential(text: string): boolean {
  return text.search(apiKeys) >= 0 || text.search(passwords) >= 0;
}
