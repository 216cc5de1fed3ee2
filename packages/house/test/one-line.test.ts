import { describe, expect, it } from "vitest";
import {
  answersGoverned,
  callsTheLine,
  governedOnTheLine,
  storeOfEndpoints,
} from "../src/one-line.ts";
import { shippedSources } from "../src/repository.ts";
import { parseSource } from "../src/source-file.ts";

const core = shippedSources("packages/core");
const endpoint = (text: string) => parseSource("packages/core/src/endpoints/endpoint.ts", text);

describe("every governed call walks the one line", () => {
  it("Chat Completions and Responses alike, and nothing else calls it", () => {
    expect(core.filter(callsTheLine).map(({ path }) => path)).toEqual([
      "packages/core/src/endpoints/endpoint.ts",
    ]);
    expect(core.filter(answersGoverned).map(({ path }) => path)).toEqual([
      "packages/core/src/endpoints/chat-completions.ts",
      "packages/core/src/endpoints/create-response.ts",
    ]);
  });

  it("which alone opens, settles and refuses, and asks providers", () => {
    const beside = core.filter(({ path }) => !path.includes("/contracts/"));
    expect(beside.flatMap(governedOnTheLine)).toEqual([]);
    const inside = core.map((file) => ({ ...file, path: file.path.replace("pipeline", "policy") }));
    expect(inside.flatMap(governedOnTheLine).length).toBeGreaterThan(5);
  });

  it.each([
    "await line.store.openStep(intent)",
    'line.store["settleStep"](settlement)',
    "const { recordRefusal } = line.store",
    "const { complete: ask } = provider",
    "const events = line.providers.get(gateway)?.complete(call)",
  ])("and not %s", (text) => {
    expect(governedOnTheLine(endpoint(text))).toHaveLength(1);
  });
});

describe("an endpoint reaches the store for stored responses alone", () => {
  it("in every file", () => {
    expect(core.flatMap(storeOfEndpoints)).toEqual([]);
  });

  it.each([
    "line.store.sessions.isOwned(owner, id)",
    "context.line.store.keys.get(id)",
    "remember(line.store)",
    "const { store } = line",
    "const { line: { store } } = context",
  ])("and not by %s", (text) => {
    expect(storeOfEndpoints(endpoint(text))).toHaveLength(1);
  });

  it("while a request may have a store of its own", () => {
    const text = "const kept = call.store ? line.store.responses.get(owner, id) : null";
    expect(storeOfEndpoints(endpoint(text))).toEqual([]);
  });
});
