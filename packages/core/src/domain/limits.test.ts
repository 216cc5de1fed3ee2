import { expect, it } from "vitest";
import { defaultDeadlines, defaultLimits } from "./limits.ts";

it("limits and deadlines have these defaults", () => {
  expect({ limits: defaultLimits, deadlines: defaultDeadlines }).toEqual({
    limits: {
      headerBytes: 16_384,
      bodyBytes: 4_194_304,
      imageBodyBytes: 8_388_608,
      depth: 64,
      schemaDepth: 32,
      stringBytes: 1_048_576,
      keys: 256,
      values: 131_072,
      messages: 2_000,
      tools: 128,
      maxOutputTokens: 4_096,
      imageTokens: 4_800,
      answerParts: 1_024,
      answerBytes: 2_097_152,
      upstreamEventBytes: 1_048_576,
      upstreamBytes: 67_108_864,
      drains: 64,
      drainsPerKey: 8,
      conversationCacheBytes: 33_554_432,
      openRequests: 4_096,
      bytesInFlight: 268_435_456,
      bytesInFlightPerKey: 134_217_728,
      openings: 64,
      waiting: 256,
      loopDelay: 60,
      heapPercent: 85,
    },
    deadlines: {
      total: 900_000,
      turn: 5_000,
      connect: 10_000,
      firstByte: 120_000,
      plainAnswer: 600_000,
      idle: 60_000,
      headers: 15_000,
      heartbeat: 15_000,
      drain: 30_000,
      close: 25_000,
    },
  });
});
