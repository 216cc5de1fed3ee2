import { randomBytes } from "node:crypto";
import type { GatewayProcess } from "@tollgate/testing";
import { expect, inject, it, vi } from "vitest";
import { embeddings, type Route, routes } from "../src/endpoints.ts";
import type { Processes } from "../src/processes.ts";
import { seededRandom } from "../src/random.ts";
import { type ReadAnswer, readAnswer } from "../src/read-answer.ts";
import { repeatRequests } from "../src/repeats/repeat-requests.ts";
import { answerTo } from "../src/upstream-wires.ts";
import { recoverAfterLapse, startProcesses } from "./process-fixture.ts";

vi.setConfig({ testTimeout: 60_000 });

const plan = { requests: 40, concurrency: 8, killEveryMs: [50, 150] } as const;

const key = ["idempotency-key: order-17"];

/** Whether a route streams: embeddings never do. */
const fieldsOf = ({ endpoint }: Route) => (endpoint === embeddings ? {} : { stream: true });

/** Asks on one route with the key, and checks refusals. */
function asking(processes: Processes, route: Route) {
  const { endpoint } = route;
  const ask = async (to: GatewayProcess) => {
    const client = await processes.post(to, fieldsOf(route), key, route);
    return readAnswer(await client.ended());
  };
  const requireRefusal = (answer: ReadAnswer, words: RegExp): void => {
    expect(answer.status).toBe(409);
    expect(endpoint.read(answer.body).error?.["message"]).toMatch(words);
  };
  return { ask, requireRefusal };
}

it.each(routes)(
  "F43 of many equal requests at once, one calls the provider, and later ones get its answer: $name",
  async (route) => {
    const released = Promise.withResolvers<void>();
    const processes = await startProcesses(async (exchange, calls) => {
      // If a repeat called the provider, too, no request would get a conflict.
      if (calls > 1) released.resolve();
      await released.promise;
      await exchange.send(answerTo(exchange));
    });
    const { ask, requireRefusal } = asking(processes, route);
    const pair = await Promise.all([processes.start(), processes.start()]);
    const asked = Array.from({ length: 16 }, (_, at) => {
      const to = pair[at % 2];
      if (to === undefined) throw new Error("no process");
      return ask(to);
    });
    const conflict = await Promise.race(asked);
    requireRefusal(conflict, /is still running/);
    expect(Number(conflict.headers["retry-after-ms"])).toBeGreaterThanOrEqual(500);
    released.resolve();
    const answers = await Promise.all(asked);
    const [first] = answers.filter(({ status }) => status === 200);
    expect(route.endpoint.read(first?.body ?? "{}")).toMatchObject(complete);
    for (const to of pair) expect((await ask(to)).body).toBe(first?.body);
    expect(processes.upstream.requests).toHaveLength(1);
    expect(await processes.problems()).toEqual([]);
  },
);

const complete = { isComplete: true, isEnded: true, error: null };

it.each(routes)(
  "F43 a repeat gets the answer of a process that was killed between the settlement and the answer: $name",
  async (route) => {
    const processes = await startProcesses((exchange) => exchange.send(answerTo(exchange)));
    const waitsAt = { verb: "settleStep", nth: 1, when: "after" } as const;
    const killed = await processes.start({ waitsAt });
    const client = await processes.post(killed, fieldsOf(route), key, route);
    await killed.reached("store");
    await killed.kill();
    expect(await client.ended()).not.toMatch(route.endpoint.completes);
    const next = await processes.start();
    const repeat = await asking(processes, route).ask(next);
    expect(repeat.headers["idempotency-replayed"]).toBe("true");
    expect(route.endpoint.read(repeat.body)).toMatchObject(complete);
    expect(processes.upstream.requests).toHaveLength(1);
  },
);

it.each(routes)(
  "F43 a repeat never calls again after its process was killed, however long that was ago: $name",
  async (route) => {
    const processes = await startProcesses((exchange) => exchange.send(answerTo(exchange)));
    const waitsAt = { verb: "openStep", nth: 1, when: "after" } as const;
    const killed = await processes.start({ waitsAt });
    await processes.post(killed, fieldsOf(route), key, route);
    await killed.reached("store");
    await killed.kill();
    const next = await processes.start();
    const { ask, requireRefusal } = asking(processes, route);
    requireRefusal(await ask(next), /is still running/);
    await recoverAfterLapse(next);
    requireRefusal(await ask(next), /was interrupted/);
    expect(processes.upstream.requests).toHaveLength(0);
  },
);

it.each(["a file", "PostgreSQL"])(
  "F43 on %s, requests that are repeated while processes are killed are called once and answered equally",
  async (where) => {
    const schema = `repeats_${randomBytes(6).toString("hex")}`;
    const place = where === "a file" ? undefined : { url: inject("postgresUrl"), schema };
    const report = await repeatRequests({ ...plan, random: seededRandom(43) }, place);
    expect(report.problems).toEqual([]);
    expect(report.kills).toBeGreaterThan(0);
    expect(report.replays).toBeGreaterThan(0);
  },
);
