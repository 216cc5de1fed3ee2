/**
 * Runs the modules that descriptor 3 names, one path per line, each in its folder. They share what they load, which takes
 * longer than most of them. A module is over when nothing keeps the event loop busy, as in a process of its own. Then this
 * process prints its argument. A module that fails ends it.
 */
import { readSync } from "node:fs";
import { dirname } from "node:path";
import { pathToFileURL } from "node:url";

const [, , mark = ""] = process.argv;
const byte = Buffer.alloc(1);
let isSettled = true;

process.on("beforeExit", (code) => {
  if (!isSettled) throw new Error("The module waits for something that never happens.");
  if (code !== 0) return;
  process.stdout.write(mark);
  runNext();
});
runNext();

function runNext(): void {
  const path = nextLine();
  if (path === null) process.exit();
  process.chdir(dirname(path));
  isSettled = false;
  // An import alone doesn't keep a process alive until the next "beforeExit".
  setImmediate(async () => {
    try {
      await import(pathToFileURL(path).href);
      isSettled = true;
    } catch (error) {
      // Some packages handle rejections themselves, which hides the reason.
      console.error(error);
      process.exit(1);
    }
  });
}

/** Waits for the next line without the event loop, which would notice the wait. */
function nextLine(): string | null {
  const bytes: number[] = [];
  while (readSync(3, byte) > 0) {
    if (byte[0] === 10) return Buffer.from(bytes).toString();
    bytes.push(byte[0] ?? 0);
  }
  return null;
}
