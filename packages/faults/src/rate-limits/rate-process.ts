/** A gateway process with rate limits and clients of its own, which ask again as soon as they may. */
import { setTimeout as pause } from "node:timers/promises";
import { createGateway, type Gateway, type RateLimitConfiguration } from "@tollgate/core";
import { scriptedProvider, serveAsProcess } from "@tollgate/testing";
import { requestOf } from "../histories/ask.ts";
import { seededRandom } from "../random.ts";
import {
  type DatabaseLocation,
  isDatabaseLocation,
  openDatabase,
} from "../stores/database-location.ts";

/** Settings of a process under rate limits. */
export interface RateSettings {
  readonly place: DatabaseLocation;
  readonly rateLimits: readonly RateLimitConfiguration[];
  readonly seed: number;
}

/** Clients that ask until they are ended. */
export interface RateClients {
  /** The key of each client. */
  readonly secrets: readonly string[];
  /** The model that each client asks. The name after `answers-` says after how many milliseconds it answers. */
  readonly models: readonly string[];
  /** The least wait of a rejected client, in milliseconds. It waits longer if the answer says so. */
  readonly pauseMs: number;
}

/** The answers that the clients received so far, and the processor time of the process in milliseconds. */
export interface RateReport {
  readonly answered: number;
  readonly rejected: number;
  /** 503, if the database was busy for too long. */
  readonly unavailable: number;
  /** Answers of other statuses. */
  readonly failed: number;
  readonly cpuMs: number;
}

/** The longest wait of a rejected client, so that demand never pauses. */
const maxPauseMs = 100;
const maxTokens = 60;

serveAsProcess(async (settings) => {
  if (!isSettings(settings)) throw new Error("The settings must contain a database and limits.");
  const random = seededRandom(settings.seed);
  const provider = scriptedProvider({
    models: { "tollgate/any": { input: "1", output: "2" } },
  });
  provider.reply(
    ({ model }) => ({
      text: "OK",
      delay: `${Number(/\d+$/.exec(model)?.[0] ?? 0)}ms`,
      usage: { promptTokens: 10, completionTokens: 10 + Math.floor(random() * (maxTokens - 10)) },
    }),
    { times: Number.POSITIVE_INFINITY },
  );
  const gateway = createGateway({
    store: openDatabase(settings.place),
    providers: { test: provider },
    rateLimits: settings.rateLimits,
  });
  await gateway.ready();
  const clients = createClients(gateway, random);
  return {
    url: "in-process",
    commands: { begin: clients.begin, end: clients.end, report: clients.report },
    close: gateway.close,
  };
});

function createClients(gateway: Gateway, random: () => number) {
  let [answered, rejected, unavailable, failed] = [0, 0, 0, 0];
  let isEnding = false;
  let work: Promise<unknown> = Promise.resolve();

  const run = async (secret: string, model: string, pauseMs: number): Promise<void> => {
    while (!isEnding) {
      const answer = await gateway.fetch(requestFor(secret, model));
      await answer.text();
      if (answer.status === 200) answered++;
      else if (answer.status === 429) rejected++;
      else if (answer.status === 503) unavailable++;
      else failed++;
      if (answer.status === 200) continue;
      const asked = Number(answer.headers.get("retry-after-ms") ?? 0);
      const wait = Math.max(pauseMs, Math.min(asked, maxPauseMs));
      await pause(wait * (0.5 + random()));
    }
  };
  return {
    begin(value: unknown): void {
      if (!isClients(value)) throw new Error("Invalid clients.");
      isEnding = false;
      const { secrets, models, pauseMs } = value;
      work = Promise.all(
        secrets.map((secret, client) => run(secret, models[client] ?? "", pauseMs)),
      );
    },
    async end(): Promise<void> {
      isEnding = true;
      await work;
    },
    report(): RateReport {
      const { user, system } = process.cpuUsage();
      return { answered, rejected, unavailable, failed, cpuMs: (user + system) / 1_000 };
    },
  };
}

function requestFor(secret: string, model: string): Request {
  const messages = [{ role: "user", content: "Hello" }];
  const body = { model: `test/tollgate/${model}`, messages, max_tokens: maxTokens };
  return requestOf({ secret, path: "chat/completions", body });
}

function isSettings(value: unknown): value is RateSettings {
  return (
    typeof value === "object" &&
    value !== null &&
    "place" in value &&
    isDatabaseLocation(value.place) &&
    Array.isArray(Reflect.get(value, "rateLimits")) &&
    Number.isSafeInteger(Reflect.get(value, "seed"))
  );
}

function isClients(value: unknown): value is RateClients {
  return (
    typeof value === "object" &&
    value !== null &&
    ["secrets", "models"].every((name) => Array.isArray(Reflect.get(value, name))) &&
    typeof Reflect.get(value, "pauseMs") === "number"
  );
}
