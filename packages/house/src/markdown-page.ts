/** A page of the documentation, as readers and links find their way in it. */
export interface MarkdownPage {
  /** What `#…` can name, in order. */
  readonly anchors: readonly string[];
  /** Targets of links to other pages, to files and to anchors; none that leave the repository. */
  readonly links: readonly string[];
  /** The text under a heading, up to the next of the same or a higher level. @throws Error without such a heading. */
  section(heading: string): string;
}

/** The anchor that a heading gets: lower case, hyphens for spaces, other punctuation gone. */
const anchorOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N}_ -]/gu, "")
    .replaceAll(" ", "-");

/** Reads a page; what stands in fences is no heading and no link. */
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
      if (found === undefined) throw new Error(`there is no heading ${title}`);
      const next = headings.find(({ at, level }) => at > found.at && level <= found.level);
      return lines.slice(found.at + 1, next?.at).join("\n");
    },
  };
}
