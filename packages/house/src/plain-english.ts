import type { ESTree } from "vite";
import { parseSource, type SourceFile, visit } from "./source-file.ts";

/** A word or phrase that reads as translated, and its plain alternative. */
interface AvoidedWording {
  readonly found: RegExp;
  readonly instead: string;
}

const word = (alternatives: string): RegExp => new RegExp(`\\b(?:${alternatives})\\b`, "giu");

/** To ban another root, add a row. Each is searched in every sentence, in upper and lower case. */
const avoidedWordings: readonly AvoidedWording[] = [
  { found: word("anew"), instead: "again" },
  { found: word("beside"), instead: "next to" },
  { found: word("stands?|stood"), instead: "is, contains or means" },
  { found: word("whom|whomever|whoever"), instead: "a clause without a relative pronoun, or who" },
  { found: word("(?:is|are|was|were|be|been|being|get|gets) told"), instead: "receives or sees" },
  { found: word("none that"), instead: "no … that" },
  { found: /\bwhat(?: \w+)? (?:is|are|was|were)\b(?![^.!]*\?)/giu, instead: "the thing's name" },
  {
    found: /(?:^|[.:;!] )What [^.?!:;|]* (?:is|are|was|were)\b(?![^.!]*\?)/gu,
    instead: "the thing's name",
  },
  { found: /\bso that\b[^.!?]*\bso that\b/giu, instead: "two sentences" },
  {
    found: /(?:^|[.:;!"“] ?)There (?:is|was) (?:no|nothing)\b/gu,
    instead: "Not found or Unknown …",
  },
];

/** Lists each avoided wording in a page of Markdown or a program, with the text around it and an alternative. */
export const avoidedWording = (path: string, text: string): readonly string[] =>
  (path.endsWith(".md")
    ? [...paragraphs(text), ...programs(text).flatMap((code) => proseOf(code, isTest(path)))]
    : proseOf(parseSource(path, text), isTest(path))
  ).flatMap((paragraph) =>
    avoidedWordings.flatMap(({ found, instead }) =>
      [...paragraph.matchAll(found)].map(
        ({ 0: match, index }) =>
          `"…${paragraph.slice(Math.max(0, index - 30), index + match.length + 30)}…": write ${instead}`,
      ),
    ),
  );

const isTest = (path: string): boolean => /\.(test|test-d)\.tsx?$|\/test\//.test(path);

const fence = /^[ \t]*```[^\n]*\n[\s\S]*?^[ \t]*```$/gm;

/** Sentences as a reader sees them, without blocks of code, inline code and link targets. */
function paragraphs(markdown: string): readonly string[] {
  return markdown
    .replace(fence, "")
    .replace(/`[^`]*`/g, "code")
    .replace(/\]\([^)]*\)/g, "]")
    .split(/\n{2,}|\n(?=\||#|- |\d+\. )|\|/)
    .map((text) => text.replace(/^[\s>-]+|^\s*\d+\. |^#+ /, "").replace(/\s+/g, " "));
}

/** The programs of a page. */
const programs = (markdown: string): readonly SourceFile[] =>
  [...markdown.matchAll(/^```(?:ts|js)\b[^\n]*\n([\s\S]*?)^```$/gm)].map(([, code = ""]) =>
    parseSource("snippet.ts", code),
  );

/**
 * The comments of a program, and its texts: in a test only the titles, because other texts are data. Elsewhere every
 * text of three words or more: error messages and the output of commands.
 */
function proseOf(file: SourceFile, test: boolean): readonly string[] {
  const found = commentsOf(file);
  const add = (text: string): void => {
    if (/\S\s+\S+\s+\S/.test(text)) found.push(text);
  };
  if (test) for (const title of titlesOf(file)) add(title);
  else
    visit(file, {
      Literal: ({ value }) => {
        if (typeof value === "string") add(value);
      },
      TemplateLiteral: (node) => add(textOf(node)),
    });
  return found.flatMap(paragraphs);
}

/** Comments without stars. Consecutive line comments are one paragraph. */
function commentsOf(file: SourceFile): string[] {
  const found: string[] = [];
  let end = -1;
  for (const comment of file.comments) {
    const text = comment.value.replace(/^\s*\*+ ?/gm, "").trim();
    const between = end === -1 ? "code" : file.text.slice(end, comment.start);
    if (comment.type === "Line" && /^[ \t]*\n[ \t]*$/.test(between))
      found.push(`${found.pop() ?? ""} ${text}`);
    else found.push(text);
    end = comment.type === "Line" ? comment.end : -1;
  }
  return found;
}

const textOf = ({ quasis }: ESTree.TemplateLiteral): string =>
  quasis.map(({ value }) => value.cooked ?? "").join("…");

/** The first argument of `it("…")`, `it.each(…)("…")` and their relatives. */
function titlesOf(file: SourceFile): readonly string[] {
  const found: string[] = [];
  visit(file, {
    CallExpression({ callee, arguments: [title] }) {
      if (title === undefined || !/^(?:describe|it|test)\b/.test(nameOf(callee))) return;
      if (title.type === "Literal" && typeof title.value === "string") found.push(title.value);
      if (title.type === "TemplateLiteral") found.push(textOf(title));
    },
  });
  return found;
}

/** `it` for `it`, `it.each` and `it.each(…)`. */
function nameOf(callee: ESTree.Node): string {
  if (callee.type === "Identifier") return callee.name;
  if (callee.type === "MemberExpression") return nameOf(callee.object);
  return callee.type === "CallExpression" ? nameOf(callee.callee) : "";
}
