import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { expect, it, onTestFinished } from "vitest";
import { spawnGateway } from "./process.ts";

const side = new URL("./serve-as-process.ts", import.meta.url).href;

function script(body: string): URL {
  const folder = mkdtempSync(join(tmpdir(), "tollgate-script-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const path = join(folder, "child.mjs");
  writeFileSync(path, `import { serveAsProcess } from ${JSON.stringify(side)};\n${body}`);
  return pathToFileURL(path);
}

const child = `serveAsProcess(async (settings, reach) => ({
  url: settings.url,
  commands: {
    double: (value) => value * 2,
    wait: async () => { await reach("door"); return "let through"; },
    fail: () => { throw new Error("no"); },
  },
  close: async () => {},
}));`;

it("passes settings to a process, sends it requests and waits for it at barriers", async () => {
  const gateway = await spawnGateway(script(child), { url: "http://127.0.0.1:1" });
  expect(gateway.url).toBe("http://127.0.0.1:1");
  expect(await gateway.command("double", 21)).toBe(42);
  await expect(gateway.command("fail")).rejects.toThrow("no");
  await expect(gateway.command("unknown")).rejects.toThrow("Unknown command: unknown.");
  const waiting = gateway.command("wait");
  await gateway.reached("door");
  gateway.release("door");
  expect(await waiting).toBe("let through");
  expect(await gateway.stop()).toBe(0);
});

it("reports a process that was killed or never listened", async () => {
  const gateway = await spawnGateway(script(child), { url: "" });
  const waiting = gateway.command("wait");
  const noticed = expect(waiting).rejects.toThrow("SIGKILL");
  await gateway.reached("door");
  await gateway.kill();
  await noticed;
  await expect(gateway.command("double", 1)).rejects.toThrow("SIGKILL");
  await expect(spawnGateway(script("process.exit(3);"), {})).rejects.toThrow("(3)");
});
