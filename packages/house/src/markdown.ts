/** A page of the documentation: its anchors, links and sections. */
export interface MarkdownPage {
  /** The targets of `#…` links, in order. */
  readonly anchors: readonly string[];
  /** The targets of links to other pages, to files and to anchors, without links that leave the repository. */
  readonly links: readonly string[];
  /** The text under a heading, up to the next of the same or a higher level. @throws Error for an unknown heading. */
  section(heading: string): string;
}

/** The anchor of a heading: lower case, hyphens for spaces, without other punctuation. */
const anchorOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N}_ -]/gu, "")
    .replaceAll(" ", "-");

/** Reads a page, except its fenced blocks. */
export function markdownPage(markdown: string): MarkdownPage {
  const prose = markdown.replace(/^```[^\n]*\n[\s\S]*?^```$/gm, "");
  const lines = prose.split("\n");
  const headings = lines.flatMap((line, at) => {
    const [, marks, title] = /^(#+) (.+)$/.exec(line) ?? [];
    return marks === undefined || title === undefined ? [] : [{ at, level: marks.length, title }];
  });
  return {
    anchors: headings.map(({ title }) => anchorOf(title)),
    links: [...prose.matchAll(/\]\(([^)\s]+)\)/g)]
      .map(([, target]) => target ?? "")
      .filter((target) => !/^[a-z]+:/.test(target)),
    section(title) {
      const found = headings.find((heading) => heading.title === title);
      if (found === undefined) throw new Error(`Unknown heading: ${title}.`);
      const next = headings.find(({ at, level }) => at > found.at && level <= found.level);
      return lines.slice(found.at + 1, next?.at).join("\n");
    },
  };
}

/** A fenced block of a Markdown page that a test runs or reads. */
export interface Snippet {
  readonly language: "ts" | "js" | "sh" | "json" | "yaml" | "toml" | "text";
  /** The file name after the language, as in ```ts tollgate.config.ts; null without one. */
  readonly file: string | null;
  readonly code: string;
  /** The line of its opening fence. */
  readonly line: number;
  /** The expected output: the ```text fence right after it; null without one. */
  readonly prints: string | null;
}

interface Fence {
  readonly info: string;
  readonly code: string;
  readonly line: number;
  readonly endLine: number;
}

function fences(markdown: string): readonly Fence[] {
  const found: Fence[] = [];
  let open: { readonly info: string; readonly line: number; readonly code: string[] } | null = null;
  for (const [index, line] of markdown.split("\n").entries()) {
    const fence = /^\s*```(.*)$/.exec(line);
    if (fence === null) {
      open?.code.push(line);
    } else if (open === null) {
      open = { info: (fence[1] ?? "").trim(), line: index + 1, code: [] };
    } else {
      const { info, line: start, code } = open;
      found.push({ info, line: start, endLine: index + 1, code: code.join("\n") });
      open = null;
    }
  }
  if (open !== null) throw new Error(`The fence in line ${open.line} is never closed.`);
  return found;
}

/**
 * The blocks of a page in some languages, in order; by default those that the docs test runs.
 * @throws Error if a fence is never closed
 */
export function snippets(
  markdown: string,
  languages: readonly Snippet["language"][] = ["ts", "sh"],
): readonly Snippet[] {
  const lines = markdown.split("\n");
  const all = fences(markdown);
  return all.flatMap((fence, index): readonly Snippet[] => {
    const [name, file = null] = fence.info.split(/\s+/);
    const language = languages.find((known) => known === name);
    if (language === undefined) return [];
    const next = all[index + 1];
    const adjacent =
      next?.info === "text" &&
      lines.slice(fence.endLine, next.line - 1).every((line) => line.trim() === "");
    const prints = adjacent ? next.code : null;
    return [{ language, file, code: fence.code, line: fence.line, prints }];
  });
}
