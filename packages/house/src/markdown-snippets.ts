/** A fenced block of a Markdown page that is meant to run. */
export interface Snippet {
  readonly language: "ts" | "js" | "sh";
  /** The file it is, when the fence names one: ```ts tollgate.config.ts */
  readonly file: string | null;
  readonly code: string;
  /** The line of its opening fence. */
  readonly line: number;
  /** What it prints: the ```text fence right after it; null when the page does not say. */
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
  if (open !== null) throw new Error(`the fence of line ${open.line} is never closed`);
  return found;
}

/**
 * The blocks of a page in some languages, in order; by default those that run here. @throws Error on a fence that is
 * never closed.
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
