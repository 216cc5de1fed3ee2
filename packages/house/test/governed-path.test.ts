import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import {
  answersGoverned,
  callsExecute,
  governedByPipeline,
  storeOfEndpoints,
} from "../src/governed-path.ts";
import { markdownPage } from "../src/markdown.ts";
import { repositoryRoot, shippedSources } from "../src/repository.ts";
import { parseSource } from "../src/source-file.ts";

const core = shippedSources("packages/core");
const endpoint = (text: string) => parseSource("packages/core/src/endpoints/endpoint.ts", text);

describe("every governed call takes the same path", () => {
  it("through one caller of execute, for Chat Completions, Responses, Messages and embeddings", () => {
    expect(core.filter(callsExecute).map(({ path }) => path)).toEqual([
      "packages/core/src/endpoints/endpoint.ts",
    ]);
    expect(core.filter(answersGoverned).map(({ path }) => path)).toEqual([
      "packages/core/src/endpoints/chat-completions.ts",
      "packages/core/src/endpoints/create-response.ts",
      "packages/core/src/endpoints/embeddings.ts",
      "packages/core/src/endpoints/messages.ts",
    ]);
  });

  it("and only the pipeline opens, settles and rejects Steps or asks providers", () => {
    const others = core.filter(({ path }) => !path.includes("/contracts/"));
    expect(others.flatMap(governedByPipeline)).toEqual([]);
    const moved = core.map((file) => ({ ...file, path: file.path.replace("pipeline", "policy") }));
    expect(moved.flatMap(governedByPipeline).length).toBeGreaterThan(5);
  });

  it.each([
    "await line.store.openStep(intent)",
    'line.store["settleStep"](settlement)',
    "const { recordRefusal } = line.store",
    "const { complete: ask } = provider",
    "provider.embed?.(call)",
    "const events = line.providers.get(gateway)?.complete(call)",
  ])("rejects %s", (text) => {
    expect(governedByPipeline(endpoint(text))).toHaveLength(1);
  });
});

describe("an endpoint uses the store only for stored responses", () => {
  it("in every file of core", () => {
    expect(core.flatMap(storeOfEndpoints)).toEqual([]);
  });

  it.each([
    "line.store.sessions.isOwned(owner, id)",
    "context.line.store.keys.get(id)",
    "remember(line.store)",
    "const { store } = line",
    "const { line: { store } } = context",
  ])("rejects %s", (text) => {
    expect(storeOfEndpoints(endpoint(text))).toHaveLength(1);
  });

  it("allows the store parameter of a request", () => {
    const text = "const kept = call.store ? line.store.responses.get(owner, id) : null";
    expect(storeOfEndpoints(endpoint(text))).toEqual([]);
  });
});

describe("the reading order in docs/the-line.md", () => {
  const page = markdownPage(readFileSync(join(repositoryRoot, "docs/the-line.md"), "utf8"));
  const files = [
    ...page.section("Where to find it in the code").matchAll(/^\d+\. `([^`]+)`/gm),
  ].map(([, path]) => `packages/core/src/${path}`);

  it("names at most 14 files, each of which exists", () => {
    expect(files.length).toBeGreaterThan(5);
    expect(files.length).toBeLessThanOrEqual(14);
    expect(files.filter((path) => !existsSync(join(repositoryRoot, path)))).toEqual([]);
  });

  it("imports each file from an earlier one", () => {
    const unreachable = files.slice(1).filter((path, at) => {
      const earlier = core.filter((file) => files.slice(0, at + 1).includes(file.path));
      const name = path.split("/").at(-1) ?? "";
      return !earlier.some(({ imports }) => imports.some((from) => from.endsWith(`/${name}`)));
    });
    expect(unreachable).toEqual([]);
  });
});
