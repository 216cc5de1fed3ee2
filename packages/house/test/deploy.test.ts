import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { repositoryRoot } from "../src/repository.ts";

const read = (path: string): string => readFileSync(join(repositoryRoot, path), "utf8");
const files = globSync("deploy/**/*.{yaml,service}", { cwd: repositoryRoot })
  .concat("deploy/container/Dockerfile")
  .map((path) => path.replaceAll("\\", "/"))
  .sort();
const starts = files.filter((path) => read(path).includes("--close-within"));
const secondsOf = (name: string, text: string): number =>
  Number(new RegExp(`${name}\\W+(\\d+)`).exec(text)?.[1]);

describe("deploy/", () => {
  it("starts Tollgate only with options that docs/reference/cli.md lists", () => {
    const lines = starts.flatMap((path) => read(path).split("\n"));
    const own = lines.filter((line) => /\bserve\b.*--| - --/.test(line)).join("\n");
    const options = [...own.matchAll(/--([a-z-]+)/g)].map(([option]) => option);
    const known = read("docs/reference/cli.md");
    expect(new Set(options).size).toBe(4);
    for (const option of options) expect(known).toContain(option);
  });

  it.each([
    ["deploy/compose/compose.yaml", "stop_grace_period"],
    ["deploy/kubernetes/gateway.yaml", "terminationGracePeriodSeconds"],
    ["deploy/systemd/tollgate.service", "TimeoutStopSec"],
  ])("%s gives a shutdown more time than Tollgate takes", (path, period) => {
    const text = read(path);
    const shutdown = secondsOf("--close-within", text);
    expect(secondsOf("--drain-delay", text)).toBeLessThan(shutdown);
    expect(shutdown).toBeLessThan(secondsOf(period, text));
  });

  it("starts Tollgate in one way everywhere", () => {
    const times = starts.map((path) => [
      secondsOf("--drain-delay", read(path)),
      secondsOf("--close-within", read(path)),
    ]);
    expect(starts).toHaveLength(4);
    for (const time of times) expect(time).toEqual(times[0]);
  });

  it("checks health at paths and a port that the server has", () => {
    const probes = files.flatMap((path) => [...read(path).matchAll(/(?:8787|path: )(\/\w+)/g)]);
    expect(probes.map(([, path]) => path).sort()).toEqual(
      ["/healthz", "/healthz", "/readyz", "/readyz"].sort(),
    );
    expect(read("deploy/kubernetes/gateway.yaml")).toContain("containerPort: 8787");
    expect(read("deploy/container/Dockerfile")).toContain("EXPOSE 8787");
    expect(read("docs/reference/cli.md")).toContain("then 8787");
  });

  it("contains no file that docs/guides/deploy.md doesn't describe", () => {
    const guide = read("docs/guides/deploy.md");
    for (const path of files)
      expect(guide, path).toContain(
        path.startsWith("deploy/kubernetes") ? "deploy/kubernetes" : path,
      );
  });
});
