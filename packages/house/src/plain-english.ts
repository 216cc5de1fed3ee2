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
  {
    found: /(?:^|[.:;!?] )What\b(?![^.?!:;|]* (?:is|are|was|were)\b)[^.?!]*\.(?=\s|$)/gu,
    instead: "the thing's name first",
  },
  { found: /\bnot un(?!til|der|less|i[a-z])\w+/giu, instead: "the positive word" },
  {
    found:
      /(?<!there )\b(?:is|are|was|were) no (?!longer|more|less|fewer|further|later|earlier)\w/giu,
    instead: "isn't a …",
  },
];

/** In a message or a title, "without Steps" is shorter. In a comment, "null if there is none" may stay. */
const avoidedInMessages: readonly AvoidedWording[] = [
  ...avoidedWordings,
  {
    found: /\bthere (?:is|are|was|were) (?:no|nothing)\b/gu,
    instead: "Not found, Unknown … or without …",
  },
];

/** Longer sentences have to be read twice. */
const maxWords = 38;

/** Lists each sentence with too many words, not counting inline code. */
const longSentences = (paragraph: string): readonly string[] =>
  paragraph
    .split(/(?<=[.!?][)"”*]*)\s+|\s+(?=@\w)/u)
    .filter((sentence) => (sentence.match(/(?<!\S)(?!code\b)\S*\w/gu) ?? []).length > maxWords)
    .map((sentence) => `"${sentence.slice(0, 60)}…" has more than ${maxWords} words: split it`);

/** Lists each avoided wording in a page of Markdown or a program, with the text around it and an alternative. */
export const avoidedWording = (path: string, text: string): readonly string[] =>
  path.endsWith(".md")
    ? [
        ...proseProblems(paragraphs(text)),
        ...programs(text).flatMap((code) => problemsOf(code, isTest(path))),
      ]
    : problemsOf(parseSource(path, text), isTest(path));

const problemsOf = (file: SourceFile, test: boolean): readonly string[] => [
  ...proseProblems(commentsOf(file).flatMap(paragraphs)),
  ...messagesOf(file, test)
    .flatMap(paragraphs)
    .flatMap((text) => wordingProblems(text, avoidedInMessages)),
];

const proseProblems = (texts: readonly string[]): readonly string[] =>
  texts.flatMap((text) => [...wordingProblems(text, avoidedWordings), ...longSentences(text)]);

const wordingProblems = (text: string, avoided: readonly AvoidedWording[]): readonly string[] =>
  avoided.flatMap(({ found, instead }) =>
    [...text.matchAll(found)].map(
      ({ 0: match, index }) =>
        `"…${text.slice(Math.max(0, index - 30), index + match.length + 30)}…": write ${instead}`,
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
    .filter((text) => !/^ {4}\S/.test(text))
    .map((text) => text.replace(/^[\s>-]+|^\s*\d+\. |^#+ /, "").replace(/\s+/g, " "));
}

/** The programs of a page. */
const programs = (markdown: string): readonly SourceFile[] =>
  [...markdown.matchAll(/^```(?:ts|js)\b[^\n]*\n([\s\S]*?)^```$/gm)].map(([, code = ""]) =>
    parseSource("snippet.ts", code),
  );

/**
 * The texts of a program that people read. In a test, these are its titles, the labels of its tables and the messages of
 * its errors, because other texts are data. Elsewhere they are all texts of three words or more: error messages and the
 * output of commands.
 */
function messagesOf(file: SourceFile, test: boolean): readonly string[] {
  const found: string[] = [];
  const add = (text: string): void => {
    if (/\S\s+\S+\s+\S/.test(text)) found.push(text);
  };
  if (test) for (const text of testTextsOf(file)) add(text);
  else
    visit(file, {
      Literal: ({ value }) => {
        if (typeof value === "string") add(value);
      },
      TemplateLiteral: (node) => add(textOf(node)),
    });
  return found;
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

/** The first argument of `it("…")`, `it.each(…)("…")`, `new Error("…")` and their relatives, and the labels of tables. */
function testTextsOf(file: SourceFile): readonly string[] {
  const found: string[] = [];
  const add = (node: ESTree.Node | null | undefined): void => {
    if (node?.type === "Literal" && typeof node.value === "string") found.push(node.value);
    if (node?.type === "TemplateLiteral") found.push(textOf(node));
  };
  visit(file, {
    CallExpression({ callee, arguments: [title] }) {
      if (!/^(?:describe|it|test)\b/.test(nameOf(callee))) return;
      add(title);
      if (title?.type === "ArrayExpression")
        for (const row of title.elements)
          add(row?.type === "ArrayExpression" ? row.elements[0] : row);
    },
    NewExpression({ callee, arguments: [message] }) {
      if (nameOf(callee).endsWith("Error")) add(message);
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
