import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { freePort } from "./free-port.ts";

const maxWaitMs = 60_000;
const teams = 50;
/** The requests that the first team may make. */
const requests = 10;

/** The addresses of a gateway, its admin API and its metrics, and of Prometheus. */
interface Ports {
  readonly gateway: number;
  readonly admin: number;
  readonly metrics: number;
  readonly prometheus: number;
}

/**
 * Does what the guide's first day says with installed packages: starts `npx tollgate serve`, creates a token, and applies a
 * file with fifty teams to the running server. Then it uses up one team's budget, and waits until a real Prometheus fires
 * the alert for it.
 * @throws Error if a step fails or takes longer than a minute
 */
export async function runFirstDay(app: string): Promise<void> {
  const folder = join(app, "first-day");
  mkdirSync(folder);
  const ports = {
    gateway: await freePort(),
    admin: await freePort(),
    metrics: await freePort(),
    prometheus: await freePort(),
  };
  const children: ChildProcess[] = [];
  try {
    const serve = start(app, folder, ports);
    children.push(serve);
    await once(serve, "spawn");
    await until("the server is ready", () => isOk(`http://127.0.0.1:${ports.gateway}/readyz`));
    const token = createToken(app, folder);
    const secret = applyTeams(app, folder, { token, admin: ports.admin });
    await useUpBudget(`http://127.0.0.1:${ports.gateway}`, secret);
    const prometheus = startPrometheus(folder, ports);
    children.push(prometheus);
    await once(prometheus, "spawn");
    await until("the alert fires", () => isFiring(ports.prometheus, "team-0/month"));
    serve.kill("SIGTERM");
    await once(serve, "exit");
    if (serve.exitCode !== 0) throw new Error(`serve exited with ${serve.exitCode}.`);
  } finally {
    for (const child of children) child.kill("SIGKILL");
  }
}

function start(app: string, folder: string, ports: Ports): ChildProcess {
  const words = ["serve", "--port", String(ports.gateway), "--admin-port", String(ports.admin)];
  return spawn(tollgate(app), [...words, "--metrics-port", String(ports.metrics)], {
    cwd: folder,
    stdio: "ignore",
  });
}

const tollgate = (app: string): string => join(app, "node_modules/.bin/tollgate");

function createToken(app: string, folder: string): string {
  const words = ["--label", "ada", "--role", "admin", "--all-organizations", "--json"];
  const printed = execFileSync(tollgate(app), ["admin-tokens", "create", ...words], {
    cwd: folder,
    encoding: "utf8",
    stdio: "pipe",
  });
  return textAt(JSON.parse(printed), "secret");
}

/** Applies the file of teams over the admin API, twice, and returns the key of the first one. */
function applyTeams(
  app: string,
  folder: string,
  { token, admin }: { readonly token: string; readonly admin: number },
): string {
  const budget = (limit: number) => ({ month: { limit: { requests: limit }, period: "month" } });
  const organizations = Object.fromEntries(
    Array.from({ length: teams }, (_, at) => [
      `team-${at}`,
      {
        keys: { app: { user: "app" } },
        budgets: budget(at === 0 ? requests : 1_000),
        rateLimits: { pace: { limit: { requests: 600 }, per: "minute" } },
      },
    ]),
  );
  writeFileSync(join(folder, "teams.yaml"), JSON.stringify({ organizations }));
  const apply = (...words: readonly string[]): string =>
    execFileSync(tollgate(app), ["apply", "-f", "teams.yaml", ...words], {
      cwd: folder,
      encoding: "utf8",
      stdio: "pipe",
      env: {
        ...process.env,
        TOLLGATE_URL: `http://127.0.0.1:${admin}`,
        TOLLGATE_TOKEN: token,
      },
    });
  apply("--yes", "--secrets-out", "secrets");
  const again = apply();
  if (!again.includes(`0 create, 0 update, 0 remove, ${3 * teams} unchanged`))
    throw new Error(`A second apply would change something: ${again}`);
  const [first = ""] = readFileSync(join(folder, "secrets"), "utf8").split("\n");
  return textAt(JSON.parse(first), "secret");
}

function textAt(value: unknown, name: string): string {
  const member: unknown =
    typeof value === "object" && value !== null ? Reflect.get(value, name) : undefined;
  if (typeof member !== "string") throw new Error(`The output has no ${name}.`);
  return member;
}

async function useUpBudget(url: string, secret: string): Promise<void> {
  const statuses: number[] = [];
  for (let sent = 0; sent <= requests; sent++) {
    const answer = await fetch(`${url}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${secret}`, "content-type": "application/json" },
      body: JSON.stringify({
        model: "sim/tollgate/echo",
        messages: [{ role: "user", content: `Hello ${sent}` }],
      }),
      signal: AbortSignal.timeout(maxWaitMs),
    });
    await answer.text();
    statuses.push(answer.status);
  }
  const expected = [...Array(requests).fill(200), 429];
  if (statuses.join() !== expected.join()) throw new Error(`The calls got ${statuses.join()}.`);
}

/** Prometheus with the alerts of `deploy/`, which it evaluates every second. */
function startPrometheus(folder: string, { metrics, prometheus }: Ports): ChildProcess {
  const configuration = {
    global: { scrape_interval: "1s", evaluation_interval: "1s" },
    rule_files: [resolve("deploy/prometheus/alerts.yml")],
    scrape_configs: [
      { job_name: "tollgate", static_configs: [{ targets: [`127.0.0.1:${metrics}`] }] },
    ],
  };
  writeFileSync(join(folder, "prometheus.yml"), JSON.stringify(configuration));
  return spawn(
    "prometheus",
    [
      "--config.file=prometheus.yml",
      "--storage.tsdb.path=prometheus-data",
      `--web.listen-address=127.0.0.1:${prometheus}`,
    ],
    { cwd: folder, stdio: "ignore" },
  );
}

async function isFiring(port: number, budget: string): Promise<boolean> {
  const answer = await fetch(`http://127.0.0.1:${port}/api/v1/alerts`);
  const text = await answer.text();
  return (
    text.includes('"alertname":"TollgateBudgetNearLimit"') &&
    text.includes(`"tollgate_budget":"${budget}"`) &&
    text.includes('"state":"firing"')
  );
}

async function isOk(url: string): Promise<boolean> {
  return (await fetch(url)).ok;
}

/** Tries until it succeeds: a server may not listen yet. */
async function until(what: string, succeeds: () => Promise<boolean>): Promise<void> {
  const end = performance.now() + maxWaitMs;
  while (!(await succeeds().catch(() => false))) {
    if (performance.now() > end) throw new Error(`After a minute, it isn't true that ${what}.`);
    await wait(200);
  }
}
