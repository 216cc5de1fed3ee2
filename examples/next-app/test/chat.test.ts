// Tests the built app in a real browser. With TOLLGATE_SCREENSHOTS=FOLDER, it saves a screenshot of each end.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, afterEach, before, describe, it, type TestContext } from "node:test";
import type { Page } from "playwright-core";
import { type RunningApp, runApp } from "./run-app.ts";
import { type RunningBrowser, startBrowser } from "./start-browser.ts";

const longestTestMs = 60_000;
const longestWaitMs = 20_000;
/** The model repeats it word by word, and each later message sends it again, so the budget lasts for only a few. */
const longMessage = "so ".repeat(60);
const mostMessages = 10;

const folder = mkdtempSync(join(tmpdir(), "tollgate-next-app-"));
let app: RunningApp | undefined;
let running: RunningBrowser | undefined;
let page: Page;
const problems: string[] = [];

before(async () => {
  app = await runApp(join(import.meta.dirname, ".."), join(folder, "tollgate.db"));
  running = await startBrowser();
  page = await running.browser.newPage();
  page.setDefaultTimeout(longestWaitMs);
  page.on("pageerror", ({ message }) => problems.push(message));
  await page.goto(app.url);
});

after(async () => {
  await running?.close();
  await app?.stop();
  rmSync(folder, { recursive: true, force: true });
});

afterEach(async (test) => {
  const pictures = process.env["TOLLGATE_SCREENSHOTS"];
  const name = (test as TestContext).name.replaceAll(/\W+/g, "-");
  if (pictures !== undefined) await page.screenshot({ path: join(pictures, `${name}.png`) });
});

async function send(message: string): Promise<void> {
  await page.getByLabel("Message").fill(message);
  await page.getByRole("button", { name: "Send" }).click();
  await page.locator(".chat ol[aria-busy=true]").waitFor();
}

/** Waits until the app is done with a message, and returns the last line of the chat. */
async function lastLine(): Promise<{ readonly by: string; readonly text: string }> {
  await page.locator(".chat ol[aria-busy=false]").waitFor();
  const line = page.locator(".chat li:last-child");
  return { by: (await line.getAttribute("class")) ?? "", text: (await line.textContent()) ?? "" };
}

const spend = async (): Promise<string> =>
  (await page.locator(".spend output").textContent()) ?? "";

/** Waits until the displayed spend changes, and returns the new one in dollars. */
async function spendAfter(shown: string): Promise<number> {
  await page.waitForFunction(
    (text) => document.querySelector(".spend output")?.textContent !== text,
    shown,
  );
  return dollars(await spend());
}

const dollars = (text: string): number => Number(text.replace("$", ""));

/** Records each different text that the model's newest line shows, and returns the records so far. */
async function watchAnswer(): Promise<() => Promise<readonly string[]>> {
  await page.evaluate(() => {
    const seen: string[] = [];
    const list = document.querySelector(".chat ol");
    if (list === null) throw new Error("The page has no chat.");
    const look = () => {
      const text = list.querySelector("li.model:last-child")?.textContent ?? "";
      if (text !== "" && text !== seen.at(-1)) seen.push(text);
    };
    new MutationObserver(look).observe(list, {
      childList: true,
      characterData: true,
      subtree: true,
    });
    Object.assign(window, { seen });
  });
  return () => page.evaluate(() => (window as typeof window & { seen: readonly string[] }).seen);
}

describe("the chat page", { timeout: longestTestMs }, () => {
  it("rejects a visitor who isn't signed in", async () => {
    const answer = await fetch(`${app?.url}/ai/v1/models`, {
      headers: { authorization: "Bearer none" },
    });
    assert.equal(answer.status, 401);
  });

  it("loads without any spend", async () => {
    assert.equal(await page.title(), "A governed chat");
    assert.equal(await spend(), "$0.00");
  });

  it("shows an answer while it arrives, and its cost", async () => {
    const seen = await watchAnswer();
    await send("good morning to everybody here");
    const answer = "You said: good morning to everybody here";
    assert.deepEqual(await lastLine(), { by: "model", text: answer });
    const texts = await seen();
    assert.ok(texts.length >= 3, `it came in ${texts.length} parts`);
    assert.ok(texts.every((text) => answer.startsWith(text)));
    assert.ok((await spendAfter("$0.00")) > 0);
    assert.equal(await page.locator(".spend tbody tr").count(), 1);
    const cookies = await page.context().cookies();
    assert.deepEqual(
      cookies.map(({ name, httpOnly }) => [name, httpOnly]),
      [["visitor", true]],
    );
  });

  it("shows a tool call and the answer that uses its result", async () => {
    const before = await spend();
    await send("What is the weather in Paris?");
    const { by, text } = await lastLine();
    assert.equal(by, "model");
    assert.match(text, /18 degrees and a light breeze in Paris/);
    assert.deepEqual(await page.locator(".chat li.tool").allTextContents(), [
      'get_weather({"city":"Paris"})',
    ]);
    assert.ok((await spendAfter(before)) > dollars(before));
    assert.equal(await page.locator(".spend tbody tr").count(), 3);
  });

  it("shows an error once the budget is exhausted, and spends nothing", async () => {
    const costs = [dollars(await spend())];
    let line = { by: "model", text: "" };
    while (line.by === "model" && costs.length <= mostMessages) {
      const before = await spend();
      await send(longMessage);
      line = await lastLine();
      if (line.by === "model") costs.push(await spendAfter(before));
    }
    assert.equal(line.by, "error");
    assert.match(line.text, /429.*budget chat-day/i);
    assert.ok(costs.length > 1, "the first of them was refused");
    assert.equal(dollars(await spend()), costs.at(-1));
    assert.ok((costs.at(-1) ?? 1) < 0.1);
  });

  it("shows the same spend after a reload", async () => {
    const before = await spend();
    await page.reload();
    assert.equal(await spend(), before);
  });

  it("logged no error", () => {
    assert.deepEqual(problems, []);
  });
});
