/** `npm run faults -- NAME`: runs one experiment. Without a name, it lists them. */

interface Experiment {
  readonly summary: string;
  load(): Promise<unknown>;
}

const experiments: Readonly<Record<string, Experiment>> = {
  aborts: {
    summary: "memory that a process retains after streams whose clients left",
    load: () => import("./aborts.ts"),
  },
  "admin-flood": {
    summary: "the p99 of chats next to a flood of admin reads",
    load: () => import("./admin-flood.ts"),
  },
  bills: {
    summary: "calls end early in every way, against an upstream that knows its true bill",
    load: () => import("./bills.ts"),
  },
  blocking: {
    summary: "how long the largest requests and answers block the event loop",
    load: () => import("./blocking.ts"),
  },
  calls: {
    summary: "each call of the store fails, in every way and every scenario",
    load: () => import("./calls.ts"),
  },
  crowd: {
    summary: "a thousand streams, and a hundred clients that stop reading",
    load: () => import("./crowd.ts"),
  },
  expressions: {
    summary: "each regular expression on long runs of the characters that it mentions",
    load: () => import("./expressions.ts"),
  },
  flood: {
    summary: "an endless event and a million tiny ones",
    load: () => import("./flood.ts"),
  },
  "full-disk": {
    summary: "PostgreSQL's disk fills up, then has room again (as root)",
    load: () => import("./full-disk.ts"),
  },
  fuzz: {
    summary: "millions of inputs that are nearly valid, from two kinds of generators",
    load: () => import("./fuzz.ts"),
  },
  guards: {
    summary: "removes each guard from a scratch copy; its tests must fail",
    load: () => import("./guards.ts"),
  },
  histories: {
    summary: "random histories give the same result on all three stores",
    load: () => import("./histories.ts"),
  },
  holds: {
    summary: "hard budgets are exhausted while processes are killed",
    load: () => import("./holds.ts"),
  },
  idempotency: {
    summary: "requests are repeated under idempotency keys while processes are killed",
    load: () => import("./idempotency.ts"),
  },
  "key-timing": {
    summary: "whether the time of a rejection reveals how much of a key is right",
    load: () => import("./key-timing.ts"),
  },
  kills: {
    summary: "a gateway under load is killed at random points",
    load: () => import("./kills.ts"),
  },
  million: {
    summary: "a million holds by two processes, with a failing store",
    load: () => import("./million.ts"),
  },
  mutations: {
    summary: "small changes of the source, one at a time; the tests must fail",
    load: () => import("./mutations.ts"),
  },
  pgbouncer: {
    summary: "the store contract through PgBouncer in transaction mode",
    load: () => import("./pgbouncer.ts"),
  },
  "rate-limits": {
    summary: "clients in several processes exceed every kind of rate limit",
    load: () => import("./rate-limits.ts"),
  },
  restarts: {
    summary: "PostgreSQL crashes repeatedly under load",
    load: () => import("./restarts.ts"),
  },
  share: {
    summary: "one key floods; the others' p99 must less than double",
    load: () => import("./share.ts"),
  },
  "slow-sockets": {
    summary: "what sockets that send byte by byte cost the requests of others",
    load: () => import("./slow-sockets.ts"),
  },
  soak: {
    summary: "mixed traffic of several tenants on two processes, with faults and kills",
    load: () => import("./soak.ts"),
  },
};

const [name] = process.argv.slice(2);
const experiment =
  name !== undefined && Object.hasOwn(experiments, name) ? experiments[name] : undefined;
if (experiment !== undefined) {
  // The experiment reads the remaining arguments itself.
  process.argv.splice(2, 1);
  await experiment.load();
} else {
  const names = Object.entries(experiments).map(
    ([one, { summary }]) => `  ${one.padEnd(12)} ${summary}\n`,
  );
  const usage = `Usage: npm run faults -- NAME [OPTIONS]\n\n${names.join("")}`;
  if (name === undefined) process.stdout.write(usage);
  else {
    process.stderr.write(`Unknown experiment: ${name}.\n\n${usage}`);
    process.exitCode = 2;
  }
}
