import { expect, it } from "vitest";
import { ending, promised, type Receiver, type Task } from "./task.ts";

/** Runs a task with an end, and returns what happened in order. */
function events(task: Task<number>, end: () => void = () => {}): readonly unknown[] {
  const seen: unknown[] = [];
  const receiver: Receiver<number> = {
    resolve: (result) => seen.push(result),
    reject: (error) => seen.push(String(error)),
  };
  const ended = (): void => {
    seen.push("end");
    end();
  };
  ending(task, ended, receiver);
  return seen;
}

function failing(): never {
  throw new Error("failed");
}

it("calls the end once, before the receiver learns the first result", () => {
  const task: Task<number> = ({ resolve, reject }) => {
    resolve(1);
    resolve(2);
    reject(new Error("late"));
  };
  expect(events(task)).toEqual(["end", 1]);
});

it("ends a task with the error that it throws", async () => {
  expect(events(failing)).toEqual(["end", "Error: failed"]);
  await expect(promised(failing)).rejects.toThrow("failed");
});

it("ends a task with the error that its end throws", () => {
  expect(events(({ resolve }) => resolve(1), failing)).toEqual(["end", "Error: failed"]);
});
