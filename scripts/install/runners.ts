import type { EmptyProject } from "./empty-project.ts";
import type { Tool } from "./matrix.ts";

/** The versions of the test runners that the empty project installs; node:test needs no package. */
export const runnerPackages: Readonly<Record<string, string>> = { jest: "^30.5.2" };

const passing = `
  const { gateway, chat } = await createTestGateway({ budgets });
  await expectPermitted(gateway, await gateway.fetch(chat()));
  await expectExhausted(await gateway.fetch(chat()), "one");
  await expectBudget(gateway, "one", { settled: 1, held: 0, remaining: 0 });
`;
const failing = `
  const { gateway, chat } = await createTestGateway();
  await expectDenied(gateway, await gateway.fetch(chat()));
`;
const failure = "but was answered 200";

const source = (importIt: string, body: string): string => `
import { createTestGateway, expectBudget, expectDenied, expectExhausted, expectPermitted } from "@tollgate/testing";
${importIt}
const budgets = [{ id: "one", limit: { requests: 1 }, period: "day" }];
it("governs", async () => {${body}});
`;

interface Runner {
  readonly name: string;
  readonly importIt: string;
  /** The arguments of `node` that run one test file. */
  readonly words: (file: string) => readonly string[];
}

/** The test runners that the assertions of @tollgate/testing support. */
export const runners: readonly Runner[] = [
  {
    name: "node:test",
    importIt: 'import { it } from "node:test";',
    words: (file) => ["--test", file],
  },
  {
    name: "jest",
    importIt: "",
    words: (file) => [
      "--experimental-vm-modules",
      "node_modules/jest/bin/jest.js",
      ...["--transform", "{}", "--testMatch", `**/${file}`],
    ],
  },
  {
    name: "vitest",
    importIt: 'import { it } from "vitest";',
    words: (file) => ["node_modules/vitest/vitest.mjs", "run", "--dir", "src", file],
  },
];

/**
 * Runs a test that passes and one that fails.
 * @throws Error if the first fails, or if the second doesn't fail with the message of the assertion
 */
export function checkRunner(project: EmptyProject, node: Tool, runner: Runner): void {
  const name = runner.name.replace(":", "-");
  const run = (kind: string, body: string): string => {
    const file = `${name}-${kind}.test.js`;
    project.write(file, source(runner.importIt, body));
    return project.run(node, runner.words(`src/${file}`));
  };
  run("passing", passing);
  let output = "";
  try {
    run("failing", failing);
  } catch (error) {
    output =
      error instanceof Error
        ? ["stdout", "stderr"].map((of) => String(Reflect.get(error, of))).join("")
        : "";
  }
  if (!output.includes(failure))
    throw new Error(`${runner.name} did not show the failed assertion: ${output}`);
}
