import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { growthProblems, plot, type Sample } from "../src/soak/plot.ts";
import { runSoak } from "../src/soak/run-soak.ts";

it("soak: some seconds of mixed traffic with faults and a kill leave every record right", {
  timeout: 120_000,
}, async () => {
  const folder = mkdtempSync(join(tmpdir(), "tollgate-soak-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const place = { filename: join(folder, "tollgate.db") };
  const plan = { place, seconds: 5, seed: 7, concurrency: 4, failing: 5, killEvery: 2 };
  const { problems, steps, acknowledged, kills } = await runSoak(plan);
  expect(problems).toEqual([]);
  expect(steps).toBeGreaterThan(0);
  expect(acknowledged).toBeGreaterThan(0);
  expect(kills).toBeGreaterThan(0);
});

const samplesOf = (rss: (at: number) => number): readonly Sample[] =>
  Array.from({ length: 40 }, (_, at) => ({
    at,
    rssBytes: rss(at),
    heapBytes: 1,
    descriptors: at === 39 ? 500 : 20,
  }));

it("soak: accepts memory that levels off, and rejects memory that keeps growing", () => {
  expect(growthProblems(samplesOf((at) => 100_000_000 + Math.min(at, 12) * 5_000_000))).toEqual([]);
  expect(growthProblems(samplesOf((at) => 100_000_000 + at * 5_000_000))).toEqual([
    "rssBytes grew from 175000000 to 275000000",
  ]);
});

it("soak: plots a line per figure and process", () => {
  const svg = plot("Soak", [samplesOf((at) => at), samplesOf(() => 5)]);
  expect(svg.match(/<polyline/g)).toHaveLength(6);
  expect(svg).toContain('points="40.0,');
});
