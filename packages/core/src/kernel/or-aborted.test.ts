import { describe, expect, it } from "vitest";
import { orAborted } from "./or-aborted.ts";

const never = () => new Promise<never>(() => {});

describe("a wait that an abort ends", () => {
  it("gives what was awaited", async () => {
    const { signal } = new AbortController();
    expect(await orAborted(signal, async () => 7)).toBe(7);
    await expect(orAborted(signal, () => Promise.reject(new Error("no")))).rejects.toThrow("no");
  });

  it("rejects with the reason at once, though what it waits for never ends", async () => {
    const controller = new AbortController();
    const waiting = orAborted(controller.signal, never);
    controller.abort(new Error("enough"));
    await expect(waiting).rejects.toThrow("enough");
  });

  it("begins nothing when it is aborted already", async () => {
    let begun = false;
    const waiting = orAborted(AbortSignal.abort(new Error("before")), async () => {
      begun = true;
    });
    await expect(waiting).rejects.toThrow("before");
    expect(begun).toBe(false);
  });
});
