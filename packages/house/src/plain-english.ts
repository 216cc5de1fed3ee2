/** A word or phrase that reads as translated, and what a native writer puts there. */
interface AvoidedWording {
  readonly found: RegExp;
  readonly instead: string;
}

const word = (alternatives: string): RegExp => new RegExp(`\\b(?:${alternatives})\\b`, "giu");

/** To ban another root, add a row. Each is searched in every sentence, whatever its case. */
const avoidedWordings: readonly AvoidedWording[] = [
  { found: word("anew"), instead: "again" },
  { found: word("beside"), instead: "next to" },
  { found: word("stands?|stood"), instead: "is, holds or means" },
  { found: word("whom|whomever|whoever"), instead: "a clause without a relative pronoun, or who" },
  { found: word("(?:is|are|was|were|be|been|being|get|gets) told"), instead: "receives or sees" },
  { found: word("none that"), instead: "no … that" },
  { found: word("what(?: \\w+)? (?:is|are|was|were)"), instead: "the thing's name" },
  { found: /(?:^|[.:;!] )What [^.?!:;|]* (?:is|are|was|were)\b/gu, instead: "the thing's name" },
  { found: /\bso that\b[^.!?]*\bso that\b/giu, instead: "two sentences" },
  {
    found: /(?:^|[.:;!"“] ?)There (?:is|was) (?:no|nothing)\b/gu,
    instead: "Not found or Unknown …",
  },
];

const fence = /^[ \t]*```[^\n]*\n[\s\S]*?^[ \t]*```$/gm;

/** Sentences as a reader sees them, without blocks of code, code in a line and addresses of links. */
function paragraphs(markdown: string): readonly string[] {
  return markdown
    .replace(fence, "")
    .replace(/`[^`]*`/g, "code")
    .replace(/\]\([^)]*\)/g, "]")
    .split(/\n{2,}|\n(?=\||#|- |\d+\. )|\|/)
    .map((text) => text.replace(/^[\s>-]+|^\s*\d+\. |^#+ /, "").replace(/\s+/g, " "));
}

/** The comments of a program and the titles of its tests, as paragraphs. */
const proseOfProgram = (program: string): string =>
  [
    ...program.matchAll(/\/\*[\s\S]*?\*\/|(?<!:)\/\/[^\n]*/g),
    ...program.matchAll(/\b(?:describe|it|test)\((?:"[^"\n]*"|`[^`\n]*`)/g),
  ]
    .map(([text]) => text.replace(/^\w+\(["`]|["`]$|\/\*\*?|\*\/|^\s*\*|\/\//gm, ""))
    .join("\n\n");

/** The programs of a page that have comments. */
const programs = (markdown: string): string =>
  [...markdown.matchAll(/^```(?:ts|js)\b[^\n]*\n[\s\S]*?^```$/gm)].join("\n");

const prose = (path: string, text: string): readonly string[] =>
  path.endsWith(".md")
    ? [...paragraphs(text), ...paragraphs(proseOfProgram(programs(text)))]
    : paragraphs(proseOfProgram(text));

/** Each avoided wording in a page of Markdown or a program, with the text around it and what to write instead. */
export const avoidedWording = (path: string, text: string): readonly string[] =>
  prose(path, text).flatMap((paragraph) =>
    avoidedWordings.flatMap(({ found, instead }) =>
      [...paragraph.matchAll(found)].map(
        ({ 0: match, index }) =>
          `"…${paragraph.slice(Math.max(0, index - 30), index + match.length + 30)}…": write ${instead}`,
      ),
    ),
  );
