import type { Step } from "@tollgate/core/store";
import type { GatewayProcess } from "@tollgate/testing";
import { expect, onTestFinished } from "vitest";
import { openProcesses, type Processes } from "../src/processes.ts";
import { readAnswer } from "../src/read-answer.ts";
import { asksForStream, chunked, streamHead } from "../src/upstream-bytes.ts";
import { answerTo, wireOf } from "../src/upstream-wires.ts";

type Script = Parameters<typeof openProcesses>[0];

/** Answers correctly, except that a streamed answer stops in its middle. */
export const stopsInStreams = (exchange: Parameters<Script>[0]) => {
  const { opening, text } = wireOf(exchange);
  const half = streamHead + chunked(opening(10, 1) + text("Half of it"));
  return exchange.send(asksForStream(exchange.body) ? half : answerTo(exchange));
};

export async function startProcesses(script: Script = stopsInStreams): Promise<Processes> {
  const opened = await openProcesses(script);
  onTestFinished(() => opened.close());
  return opened;
}

export const leaseLapseMs = 20_000;

/** Lets the leases of dead processes lapse, as seen by this process, and returns the number of recovered Steps. */
export async function recoverAfterLapse(process: GatewayProcess): Promise<unknown> {
  await process.command("push", leaseLapseMs);
  return process.command("recover");
}

export function expectInterrupted(step: Step | undefined): void {
  expect(step).toMatchObject({ outcome: "interrupted", reason: "process_lost" });
  expect(step?.attempts.at(-1)?.end).toMatchObject({
    usageBasis: "estimated",
    outcome: "interrupted",
  });
}

export async function expectNextWorks(
  processes: Processes,
  process: GatewayProcess,
): Promise<void> {
  const next = await processes.post(process);
  expect(readAnswer(await next.ended()).status).toBe(200);
  expect(await processes.problems()).toEqual([]);
}
