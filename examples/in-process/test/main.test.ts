import { once } from "node:events";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { startExample } from "../../run-example.ts";

it("runs a tool loop and a stream without a server, then exits", async () => {
  const child = startExample(fileURLToPath(new URL("..", import.meta.url)));
  const exited = once(child, "exit");
  const printed = child.stdout === null ? "" : await text(child.stdout);
  expect(printed).toMatch(
    /^The tool answered: 18 degrees\nYou said: Good morning\n3 calls by web and job, \$0\.\d+\n$/,
  );
  expect(await exited).toEqual([0, null]);
}, 30_000);
