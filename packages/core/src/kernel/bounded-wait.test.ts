import { describe, expect, it } from "vitest";
import { orAborted, orTimeout } from "./bounded-wait.ts";
import { systemClock } from "./clock.ts";

const never = () => new Promise<never>(() => {});

describe("a wait that an abort ends", () => {
  it("settles as the promise does", async () => {
    const { signal } = new AbortController();
    expect(await orAborted(signal, async () => 7)).toBe(7);
    await expect(orAborted(signal, () => Promise.reject(new Error("no")))).rejects.toThrow("no");
  });

  it("rejects with the signal's reason even if the promise never settles", async () => {
    const controller = new AbortController();
    const waiting = orAborted(controller.signal, never);
    controller.abort(new Error("enough"));
    await expect(waiting).rejects.toThrow("enough");
  });

  it("calls nothing if the signal has already aborted", async () => {
    let wasCalled = false;
    const waiting = orAborted(AbortSignal.abort(new Error("before")), async () => {
      wasCalled = true;
    });
    await expect(waiting).rejects.toThrow("before");
    expect(wasCalled).toBe(false);
  });
});

describe("a wait with a time limit", () => {
  it("settles as the call does", async () => {
    expect(await orTimeout(systemClock, 60_000, () => 7)).toBe(7);
    const failing = orTimeout(systemClock, 60_000, () => Promise.reject(new Error("no")));
    await expect(failing).rejects.toThrow("no");
  });

  it("rejects if the call takes longer", async () => {
    await expect(orTimeout(systemClock, 1, never)).rejects.toThrow(
      "The call exceeded its time limit.",
    );
  });
});
