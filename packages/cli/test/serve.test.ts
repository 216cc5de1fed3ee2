import { connect } from "node:net";
import { describe, expect, it } from "vitest";
import {
  chat,
  pacedConfiguration,
  run,
  runJson,
  startServe,
  temporaryFolder,
} from "./command-line.ts";

const secretPattern = /\btg_[0-9A-Za-z]{49}\b/;

describe("tollgate serve without a configuration", () => {
  it("prints a key once, answers with it, and keeps what happened in ./tollgate.db", async () => {
    const folder = temporaryFolder();
    const first = await startServe(folder);
    const secret = secretPattern.exec(first.announced)?.[0] ?? "";
    expect(first.announced).toMatch(/^Tollgate listens on http:\/\/127\.0\.0\.1:\d+$/m);
    expect(secret).not.toBe("");

    const plain = await chat(first.url, { secret, text: "hello there" });
    expect(await plain.json()).toMatchObject({
      choices: [{ message: { content: "You said: hello there" } }],
    });
    const streamed = await chat(first.url, { secret, text: "hello there", stream: true });
    expect(await streamed.text()).toMatch(/data: \[DONE\]\n\n$/);
    first.child.kill("SIGTERM");
    expect(await first.exited).toBe(0);

    expect(await runJson(folder, "activity")).toMatchObject({
      data: [
        { model: "sim/tollgate/echo", keyLabel: "first key", promptTokens: 5, completionTokens: 4 },
        { model: "sim/tollgate/echo", costNanoUsd: 2_100, source: "api" },
      ],
      nextCursor: null,
    });

    const second = await startServe(folder);
    expect(second.announced).toContain("There is a key already");
    expect(second.announced).not.toMatch(secretPattern);
    expect((await chat(second.url, { secret, text: "again" })).status).toBe(200);
    second.child.kill("SIGINT");
    expect(await second.exited).toBe(0);
  });

  it("fails in one line when the port is taken", async () => {
    const folder = temporaryFolder();
    const { url, child } = await startServe(folder);
    const { port } = new URL(url);
    const { code, errors } = await run(folder, ["serve", "--port", port]);
    expect(code).toBe(1);
    expect(errors).toBe(`error: port ${port} of 127.0.0.1 is in use: choose another with --port\n`);
    child.kill("SIGTERM");
  });
});

describe("tollgate serve, told to stop in mid-stream", () => {
  const words = ["--config", pacedConfiguration];

  async function streaming(pace: string) {
    const folder = temporaryFolder();
    const served = await startServe(folder, words, { PACE: pace });
    const secret = secretPattern.exec(served.announced)?.[0] ?? "";
    const text = "one two three four five six seven eight nine ten";
    const answer = await chat(served.url, { secret, text, stream: true });
    const reader = answer.body?.pipeThrough(new TextDecoderStream()).getReader();
    if (!reader) throw new Error("the answer has no body");
    return { folder, served, reader, first: (await reader.read()).value ?? "" };
  }

  it("lets the stream end, settles it, and exits with 0", async () => {
    const { folder, served, reader, first } = await streaming("25");
    served.child.kill("SIGTERM");
    let all = first;
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      all += value;
    }
    expect(all).toMatch(/data: \[DONE\]\n\n$/);
    expect(all).toContain(" ten");
    expect(await served.exited).toBe(0);
    const steps = await runJson(folder, "steps", "list", ...words);
    expect(steps).toMatchObject({ data: [{ outcome: "completed" }] });
  });

  it("exits at once on the second signal", async () => {
    const { served } = await streaming("400");
    served.child.kill("SIGTERM");
    while (await accepts(served.url));
    served.child.kill("SIGTERM");
    expect(await served.exited).toBe(143);
  });
});

/** Whether a new connection is still accepted. */
function accepts(url: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(Number(new URL(url).port), "127.0.0.1");
    socket.once("connect", () => resolve(true)).once("error", () => resolve(false));
    socket.once("connect", () => socket.destroy());
  });
}
