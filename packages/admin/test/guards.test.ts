import { everyOrganization } from "@tollgate/core";
import { etagOf } from "@tollgate/core/administration";
import { memoryStore } from "@tollgate/store-memory";
import { createTestGateway } from "@tollgate/testing";
import { describe, expect, it, vi } from "vitest";
import {
  type AdminFailure,
  type AdminGrant,
  type AdminOptions,
  adminHandler,
  type RemoteOptions,
  remoteAdministration,
} from "../src/index.ts";

const admin: AdminGrant = { actor: "root", organizations: "all", role: "admin" };

async function served(options: Partial<AdminOptions> = {}) {
  const { gateway, clock } = await createTestGateway();
  const handler = adminHandler(gateway, { authenticateAdmin: () => admin, clock, ...options });
  const call = (path: string, init: RequestInit = {}) =>
    handler.fetch(`http://ops.example/admin/v1${path}`, init);
  return { gateway, clock, handler, call };
}

const creation = JSON.stringify({ organizationId: "acme", userId: "ada", label: "a" });
const json = { "content-type": "application/json" };

it("ignores the server that calls it, as the gateway does", async () => {
  const { handler } = await served();
  class Server {
    readonly method = "PUT";
  }
  const request = new Request("http://ops.example/admin/v1/budgets");
  const answer = await Reflect.apply(handler.fetch, null, [request, new Server()]);
  expect(answer).toMatchObject({ status: 200 });
});

it.each([
  ["/steps?organizationId=acme&organizationId=acme", "organizationId"],
  ["/steps?limit=1&limit=2", "limit"],
  ["/steps?dataClass.from=D0_PUBLIC&dataClass.from=D1_INTERNAL", "dataClass.from"],
])("names the parameter of %s that takes one value", async (path, param) => {
  const { call } = await served();
  const answer = await call(path);
  const message = `\`${param}\` takes one value and is given 2 times.`;
  expect([answer.status, await answer.json()]).toMatchObject([400, { error: { param, message } }]);
});

describe("the client of the admin API", () => {
  const open = (url: string, insecure = false) =>
    remoteAdministration({ url, token: "t", insecure });

  it.each(["http://ops.example", "http://127.0.0.1.evil.example", "http://10.0.0.7:8788"])(
    "sends no token over http to %s unless it is allowed to",
    (url) => {
      expect(() => open(url)).toThrow("`url` must be https");
      expect(open(url, true)).toHaveProperty("keys");
    },
  );

  it.each(["https://ops.example", "http://localhost:1", "http://127.1:1", "http://[::1]:1"])(
    "sends a token to %s",
    (url) => {
      expect(open(url)).toHaveProperty("keys");
    },
  );

  it.each(["", ".", ".."])("rejects the id %j, which a URL would drop", async (id) => {
    const sent = vi.fn();
    const { budgets } = remoteAdministration({ url: "https://o.example", token: "t", fetch: sent });
    await expect(budgets.remove({ id })).rejects.toMatchObject({ code: "invalid_argument" });
    expect(sent).not.toHaveBeenCalled();
  });

  it("replaces a record although the fetch of its host keeps a copy of each answer", async () => {
    const { handler, gateway } = await served();
    const { key } = await gateway.keys.create({
      organizationId: "acme",
      userId: "ada",
      label: "a",
    });
    const copies: Response[] = [];
    const { keys } = remoteAdministration({
      url: "https://ops.example",
      token: "t",
      async fetch(request) {
        const answer = await handler.fetch(request);
        copies.push(answer.clone());
        return answer;
      },
    });
    const { secret } = await keys.rotate({ organizationId: "acme", id: key.id });
    expect(secret).toMatch(/^tg_/);
  });

  const textOf = async (file: ReadableStream<Uint8Array>) => {
    let text = "";
    for await (const piece of file) text += Buffer.from(piece);
    return text;
  };
  const exportWith = (fetchWith: (request: Request) => Promise<Response>, timeout = 60_000) =>
    textOf(
      remoteAdministration({
        url: "https://o.example",
        token: "t",
        fetch: fetchWith,
        timeout,
      }).steps.export({ organizationId: "acme" }, { format: "jsonl" }),
    );
  const lines = { headers: { "content-type": "application/x-ndjson" } };
  const unavailable = { name: "GatewayError", code: "administration_unavailable" };

  it("reads an export that takes longer than the timeout once it has begun", async () => {
    const slowly = async ({ signal }: Request) =>
      new Response(
        new ReadableStream({
          start(controller) {
            controller.enqueue(Buffer.from("first "));
            signal.addEventListener("abort", () => controller.error(signal.reason));
          },
          async pull(controller) {
            await new Promise((resolve) => setTimeout(resolve, 50));
            if (signal.aborted) return;
            controller.enqueue(Buffer.from("last"));
            controller.close();
          },
        }),
        lines,
      );
    expect(await exportWith(slowly, 1)).toBe("first last");
  });

  it("gives up on an export that doesn't begin in time", async () => {
    const never = ({ signal }: Request) =>
      new Promise<Response>((_, reject) => {
        signal.addEventListener("abort", () => reject(signal.reason));
      });
    await expect(exportWith(never, 1)).rejects.toMatchObject({
      ...unavailable,
      cause: { name: "TimeoutError" },
    });
  });

  it("waits five minutes for maintenance, and a minute for anything else", async () => {
    const timeouts = vi.spyOn(AbortSignal, "timeout");
    const { handler } = await served();
    const open = (options: Partial<RemoteOptions> = {}) =>
      remoteAdministration({
        url: "https://ops.example",
        token: "t",
        fetch: (request) => handler.fetch(request),
        ...options,
      });
    await open().sweep();
    await open().models();
    await open({ timeout: 7 }).sweep();
    const waited = timeouts.mock.calls.flat();
    timeouts.mockRestore();
    expect(waited).toEqual([300_000, 60_000, 7]);
  });

  it("says that the admin API didn't answer if an export breaks off", async () => {
    const cause = new TypeError("terminated");
    const breaking = async () =>
      new Response(
        new ReadableStream({
          pull: (controller) => controller.error(cause),
        }),
        lines,
      );
    await expect(exportWith(breaking)).rejects.toMatchObject({ ...unavailable, cause });
  });
});

describe("the admin API", () => {
  it("needs authenticateAdmin", async () => {
    const { gateway } = await createTestGateway();
    // @ts-expect-error it has no default
    expect(() => adminHandler(gateway, {})).toThrow("authenticateAdmin");
  });

  it.each([
    [{ "sec-fetch-site": "cross-site", authorization: "Bearer x" }, 403],
    [{ "sec-fetch-site": "same-site" }, 403],
    [{ origin: "http://evil.example" }, 403],
    [{ origin: "null", authorization: "Bearer x" }, 403],
    [{}, 403],
    [{ "sec-fetch-site": "same-origin" }, 201],
    [{ origin: "http://ops.example" }, 201],
    [{ authorization: "Bearer x" }, 201],
  ])("answers a change with the headers %j with %i", async (headers, status) => {
    const { call, gateway } = await served();
    const init = { method: "POST", body: creation, headers: { ...json, ...headers } };
    const answer = await call("/keys", init);
    expect(answer.status).toBe(status);
    if (status !== 403) return;
    expect(await answer.json()).toMatchObject({ error: { code: "cross_origin_refused" } });
    expect((await gateway.keys.list({ organizationId: "acme" })).data).toEqual([]);
  });

  it("accepts changes only as JSON, and names unknown parameters wherever they are", async () => {
    const { call } = await served();
    const authorization = "Bearer x";
    const post = (path: string, body: unknown, type = "application/json") =>
      call(path, {
        method: "POST",
        headers: { authorization, "content-type": type },
        body: JSON.stringify(body),
      });
    expect((await post("/keys", {}, "text/plain")).status).toBe(415);
    const budget = { id: "b", limit: { usd: 1 }, period: "day" };
    for (const [path, body, param] of [
      ["/keys", { organizationId: "acme", userId: "a", label: "b", actor: "eve" }, "actor"],
      ["/budgets", { ...budget, colour: "red" }, "colour"],
      ["/budgets", { ...budget, scope: { usr: "a" } }, "scope.usr"],
      ["/budgets/b", { ...budget }, "id"],
      ["/keys?organizationId=acme", {}, "organizationId"],
    ] as const) {
      const answer = await post(path, body);
      expect(await answer.json()).toMatchObject({ error: { code: "unknown_parameter", param } });
      expect(answer.status).toBe(400);
    }
    const wrong = await call("/steps?limit=0&dataClass.from=D9&outcome=lost");
    expect(wrong.status).toBe(400);
    expect(await wrong.json()).toMatchObject({ error: { code: "invalid_argument" } });
    expect((await call("/keys?colour=red")).status).toBe(400);
    const twice = await call("/steps?dataClass=D9&dataClass.from=D0_PUBLIC");
    expect(await twice.json()).toMatchObject({
      error: { code: "invalid_argument", param: "dataClass" },
    });
  });

  it("returns how many keys of a user it revoked, even if there are many", async () => {
    const { call, gateway } = await served();
    const user = { organizationId: "acme", userId: "ada" };
    for (let at = 0; at < 30; at++) await gateway.keys.create({ ...user, label: `${at}` });
    const init = {
      method: "POST",
      headers: { ...json, authorization: "Bearer t" },
      body: JSON.stringify(user),
    };
    const first = await call("/keys/revoke", init);
    expect([first.status, await first.json()]).toEqual([200, { revoked: 30 }]);
    expect(await (await call("/keys/revoke", init)).json()).toEqual({ revoked: 0 });
    expect((await gateway.keys.list({ ...user, live: true })).data).toEqual([]);
  });

  it("answers 400 to a range that ends before it begins", async () => {
    const { call } = await served();
    const range = "from=2026-01-02&to=2026-01-01T23:59:59Z";
    const paths = ["activity", "steps", "decisions", "changes"].flatMap((noun) => [
      `/${noun}?${range}`,
      `/${noun}/export?format=csv&${range}`,
    ]);
    const sums = [`/activity/summary?${range}`, `/steps/summary?${range}`];
    for (const path of [...paths, ...sums, `/steps/series?bucket=day&${range}`]) {
      const answer = await call(path);
      expect([path, answer.status]).toEqual([path, 400]);
      expect(await answer.json()).toMatchObject({
        error: { param: "from", message: "`from` must not be after `to`." },
      });
    }
  });

  it("names the organization of a scope that the grant isn't for", async () => {
    const { call } = await served({
      authenticateAdmin: () => ({ actor: "ada", organizations: ["acme"], role: "admin" }),
    });
    const scope = { organization: ["acme", "rival"] };
    const limits = {
      budgets: { limit: { usd: 1 }, period: "day" },
      "rate-limits": { limit: { concurrentSteps: 1 } },
    };
    for (const [noun, limit] of Object.entries(limits)) {
      const answer = await call(`/${noun}`, {
        method: "POST",
        headers: { ...json, authorization: "Bearer x" },
        body: JSON.stringify({ id: "b", scope, ...limit }),
      });
      expect(await answer.json()).toMatchObject({
        error: { code: "organization_not_found", param: "scope.organization" },
      });
    }
  });

  it("answers unknown paths with 404, and other methods with 405", async () => {
    const { call } = await served();
    for (const path of ["/nothing", "/keys/", "/keys/%zz", "/keys/a/b/c"])
      expect((await call(path)).status, path).toBe(404);
    const answer = await call("/keys", { method: "PUT" });
    expect([answer.status, answer.headers.get("allow")]).toEqual([405, "GET, POST"]);
  });

  it("answers 429 to wrong tokens from an address after 10 within a minute, and never to good ones", async () => {
    const { call, clock } = await served({
      authenticateAdmin: (request) => (request.headers.has("x-good") ? admin : null),
      clientAddress: ({ headers }) => headers.get("x-address"),
    });
    const from = async (address: string, good = {}) =>
      (await call("/me", { headers: { "x-address": address, ...good } })).status;
    for (let failed = 0; failed < 10; failed++) expect(await from("a")).toBe(401);
    expect(await from("a")).toBe(429);
    expect(await from("a", { "x-good": "1" })).toBe(200);
    expect(await from("b")).toBe(401);
    await clock.advance("60s");
    expect(await from("a")).toBe(401);
  });

  it("tags a record, answers 304 to who has it, and 412 to a change of another version", async () => {
    const { call, gateway } = await served();
    const scope = { organization: "acme" };
    await gateway.budgets.create({ id: "b", scope, limit: { usd: 1 }, period: "day" });
    const first = await call("/budgets/b");
    const tag = first.headers.get("etag") ?? "";
    expect(tag).toMatch(/^"[0-9a-f]{32}"$/);
    const known = await call("/budgets/b", { headers: { "if-none-match": tag } });
    expect([known.status, await known.text(), known.headers.get("etag")]).toEqual([304, "", tag]);
    const change = (usd: number, ifMatch: string) =>
      call("/budgets/b", {
        method: "POST",
        body: JSON.stringify({ scope, limit: { usd }, period: "day" }),
        headers: { ...json, authorization: "Bearer x", "if-match": ifMatch },
      });
    const changed = await change(2, tag);
    expect([changed.status, changed.headers.get("etag") === tag]).toEqual([200, false]);
    expect((await call("/budgets/b", { headers: { "if-none-match": tag } })).status).toBe(200);
    const late = await change(3, tag);
    expect(late.status).toBe(412);
    expect(await late.json()).toMatchObject({ error: { code: "precondition_failed" } });
    expect((await gateway.budgets.get({ id: "b" })).limit).toBe(2_000_000_000);
    for (const header of ["*", "abc", 'W/"a"', '"a", "b"'])
      expect((await change(3, header)).status).toBe(400);
    const unheeded = await call("/keys", { headers: { "if-match": tag } });
    expect(unheeded.status).toBe(400);
    const unkeyed = await call("/keys", { headers: { "idempotency-key": "a" } });
    expect(await unkeyed.json()).toMatchObject({ error: { param: "Idempotency-Key" } });
    const gone = { method: "DELETE", headers: { authorization: "Bearer x", "if-match": tag } };
    expect((await call("/budgets/b", gone)).status).toBe(412);
  });

  it("checks one token of an address after the other once 10 were wrong, and 10 at once before", async () => {
    let underWay = 0;
    const atOnce: number[] = [];
    const { call } = await served({
      authenticateAdmin: async (request) => {
        atOnce.push(++underWay);
        await Promise.resolve();
        underWay--;
        return request.headers.has("x-good") ? admin : null;
      },
      clientAddress: () => "a",
    });
    const answers = await Promise.all([
      ...Array.from({ length: 60 }, () => call("/me")),
      call("/me", { headers: { "x-good": "1" } }),
    ]);
    const statuses = answers.map(({ status }) => status);
    expect(statuses).toEqual([...Array(10).fill(401), ...Array(50).fill(429), 200]);
    expect(Math.max(...atOnce)).toBe(10);
    expect(atOnce.slice(10)).toEqual(Array(51).fill(1));
  });

  it("has room for other addresses while sign-ins of one wait for each other", async () => {
    const asked = Promise.withResolvers<null>();
    const { call } = await served({
      authenticateAdmin: ({ headers }) => (headers.has("x-good") ? admin : asked.promise),
      clientAddress: ({ headers }) => headers.get("x-address"),
    });
    const flood = Array.from({ length: 64 }, () => call("/me", { headers: { "x-address": "a" } }));
    const other = { headers: { "x-address": "b", "x-good": "1" } };
    for (let times = 0; times < 2; times++) expect((await call("/me", other)).status).toBe(200);
    asked.resolve(null);
    const statuses = (await Promise.all(flood)).map(({ status }) => status);
    expect(statuses).toEqual([...Array(10).fill(401), ...Array(53).fill(429), 503]);
  });

  it.each([
    ["raise", "POST", "/raises", { by: { requests: 1 }, until: "2030-01-01" }],
    ["cancelRaise", "DELETE", "/raises/RAISE", null],
  ] as const)(
    "lets nobody %s a budget that has become another organization's since it was seen",
    async (change, method, path, body) => {
      const { gateway } = await createTestGateway();
      const budget = { id: "b", limit: { requests: 1 }, period: "day" } as const;
      await gateway.budgets.create({ ...budget, scope: { organization: "acme" } });
      const by = { requests: 5 };
      const raised = { id: "b", by, until: "2030-01-01", idempotencyKey: "same-id" };
      const { id } = await gateway.budgets.raise(raised);
      const before = await gateway.budgets.raises({ id: "b" });
      const moving = async (input: never) => {
        await gateway.budgets.remove({ id: "b" });
        await gateway.budgets.create({ ...budget, scope: { organization: "rival" } });
        await gateway.budgets.raise(raised);
        return Reflect.apply(gateway.budgets[change], null, [input]);
      };
      const handler = adminHandler(
        { ...gateway, budgets: { ...gateway.budgets, [change]: moving } },
        { authenticateAdmin: () => ({ ...admin, organizations: ["acme"] }) },
      );
      const at = `http://ops.example/admin/v1/budgets/b${path.replace("RAISE", id)}`;
      const answer = await handler.fetch(at, {
        method,
        headers: { ...json, authorization: "Bearer x" },
        ...(body === null ? {} : { body: JSON.stringify(body) }),
      });
      expect(await answer.json()).toMatchObject({ error: { code: "precondition_failed" } });
      expect(await gateway.budgets.raises({ id: "b" })).toEqual(before);
    },
  );

  it.each(["update", "remove"] as const)(
    "lets nobody %s a budget or rate limit that has become another organization's since it was seen",
    async (change) => {
      const { gateway } = await createTestGateway();
      const mine = { scope: { organization: "acme" }, limit: { requests: 1 } };
      const theirs = { ...mine, scope: { organization: "rival" } };
      const budget = { id: "b", period: "day" } as const;
      const rate = { id: "r", per: "minute" } as const;
      await gateway.budgets.create({ ...budget, ...mine });
      await gateway.rateLimits.create({ ...rate, ...mine });
      const handler = adminHandler(
        {
          ...gateway,
          budgets: {
            ...gateway.budgets,
            [change]: async (input: never) => {
              await gateway.budgets.remove({ id: "b" });
              await gateway.budgets.create({ ...budget, ...theirs });
              return Reflect.apply(gateway.budgets[change], null, [input]);
            },
          },
          rateLimits: {
            ...gateway.rateLimits,
            [change]: async (input: never) => {
              await gateway.rateLimits.remove({ id: "r" });
              await gateway.rateLimits.create({ ...rate, ...theirs });
              return Reflect.apply(gateway.rateLimits[change], null, [input]);
            },
          },
        },
        { authenticateAdmin: () => ({ ...admin, organizations: ["acme"] }) },
      );
      for (const [path, of, seen] of [
        ["budgets/b", { ...mine, period: "day" }, await gateway.budgets.get({ id: "b" })],
        ["rate-limits/r", { ...mine, per: "minute" }, await gateway.rateLimits.get({ id: "r" })],
      ] as const) {
        const tag = change === "update" ? { "if-match": `"${etagOf(seen)}"` } : {};
        const answer = await handler.fetch(`http://ops.example/admin/v1/${path}`, {
          method: change === "update" ? "POST" : "DELETE",
          headers: { ...json, ...tag, authorization: "Bearer x" },
          ...(change === "update" ? { body: JSON.stringify(of) } : {}),
        });
        expect(await answer.json()).toMatchObject({ error: { code: "precondition_failed" } });
      }
      expect((await gateway.budgets.get({ id: "b" })).scope).toEqual({ organization: "rival" });
      expect((await gateway.rateLimits.get({ id: "r" })).scope).toEqual({ organization: "rival" });
    },
  );

  it.each([
    ["budgets", "update", "/budgets/b", { limit: { requests: 9 }, period: "day" }],
    ["budgets", "remove", "/budgets/b", null],
    ["budgets", "raise", "/budgets/b/raises", { by: { requests: 9 }, until: "2030-01-01" }],
    ["budgets", "cancelRaise", "/budgets/b/raises/r", null],
    ["rateLimits", "update", "/rate-limits/r", { limit: { requests: 9 }, per: "minute" }],
    ["rateLimits", "remove", "/rate-limits/r", null],
  ] as const)(
    "applies %s.%s only to the record that the grant was checked against",
    async (noun, change, path, body) => {
      const { gateway } = await createTestGateway();
      const scope = { organization: "acme" };
      const mine = { scope, limit: { requests: 1 } };
      await gateway.budgets.create({ ...mine, id: "b", period: "day" });
      await gateway.rateLimits.create({ ...mine, id: "r", per: "minute" });
      const changed = vi.fn();
      const handler = adminHandler(
        { ...gateway, [noun]: { ...gateway[noun], [change]: changed } },
        { authenticateAdmin: () => ({ ...admin, organizations: ["acme"] }) },
      );
      const id = noun === "budgets" ? "b" : "r";
      // Anyone can compute the tag that the record would have as another organization's.
      const theirs = etagOf({
        ...(await gateway[noun].get({ id })),
        scope: { organization: "rival" },
      });
      const sent = change === "update" ? { ...body, scope } : body;
      const answer = await handler.fetch(`http://ops.example/admin/v1${path}`, {
        method: body === null ? "DELETE" : "POST",
        headers: { ...json, authorization: "Bearer x", "if-match": `"${theirs}"` },
        ...(body === null ? {} : { body: JSON.stringify(sent) }),
      });
      expect(answer.status).toBe(412);
      expect(await answer.json()).toMatchObject({ error: { code: "precondition_failed" } });
      expect(changed).not.toHaveBeenCalled();
    },
  );

  it("signs in everyone behind one address at the same time", async () => {
    const { call } = await served({ clientAddress: () => "proxy" });
    const answers = await Promise.all(Array.from({ length: 40 }, () => call("/me")));
    // Eight reads at once, but no sign-in fails for another.
    expect(answers.map(({ status }) => status)).not.toContain(429);
  });

  it.each([
    ["an error", () => Promise.reject(new Error("canary"))],
    ["an invalid grant", () => ({ ...admin, role: "owner" })],
    ["an actor that isn't well-formed text", () => ({ ...admin, actor: "\ud800" })],
    [
      "an organization that isn't well-formed text",
      () => ({ ...admin, organizations: ["\ud800"] }),
    ],
  ])("answers with 503 if the host returns %s", async (_, authenticateAdmin) => {
    // @ts-expect-error a host without types
    const { call } = await served({ authenticateAdmin });
    const answer = await call("/me");
    expect(answer.status).toBe(503);
    expect(await answer.text()).not.toContain("canary");
  });

  it("reports each request that fails, with where it failed but without its message", async () => {
    const { gateway } = await createTestGateway();
    const failures: AdminFailure[] = [];
    const list = () => {
      throw new TypeError("canary");
    };
    const handler = adminHandler(
      { ...gateway, keys: { ...gateway.keys, list } },
      {
        authenticateAdmin({ headers }) {
          if (headers.has("x-broken")) throw new RangeError("canary");
          return headers.has("x-good") ? admin : null;
        },
        onFailure(failure) {
          failures.push(failure);
          throw new Error("the log is full");
        },
      },
    );
    const call = (path: string, header: string) =>
      handler.fetch(`http://ops.example/admin/v1${path}`, { headers: { [header]: "1" } });
    const answers = [
      await call("/keys", "x-good"),
      await call("/me", "x-broken"),
      await call("/me", "x-wrong"),
      await call("/nothing", "x-good"),
      await call("/me", "x-good"),
    ];
    const inHere = (name: string) => expect.stringMatching(`^${name}\n.*guards\\.test\\.ts`);
    expect(failures).toMatchObject([
      { operation: "keys.list", status: 500, code: "internal_error", where: inHere("TypeError") },
      { operation: "me", code: "authentication_unavailable", where: inHere("RangeError") },
      { operation: "me", status: 401, code: "admin_unauthenticated", where: null },
      { operation: null, status: 404, code: "not_found", where: null },
    ]);
    expect(failures.map(({ requestId }) => requestId)).toEqual(
      answers.slice(0, 4).map(({ headers }) => headers.get("x-request-id")),
    );
    expect(answers.map(({ status }) => status)).toEqual([500, 503, 401, 404, 200]);
    expect(JSON.stringify(failures)).not.toContain("canary");
  });

  it("survives a log of failures that is async and fails", async () => {
    // An unhandled rejection would end the process, and this test run.
    const { call } = await served({
      onFailure: async () => {
        throw new Error("the log is full");
      },
    });
    expect((await call("/nothing")).status).toBe(404);
    await new Promise(setImmediate);
  });

  it("reports an export that breaks off", async () => {
    const { gateway } = await createTestGateway();
    const failures: AdminFailure[] = [];
    const pieces = [new Uint8Array([105])];
    const exported = () =>
      new ReadableStream<Uint8Array>(
        {
          pull(controller) {
            const piece = pieces.pop();
            if (piece === undefined) throw new TypeError("canary");
            controller.enqueue(piece);
          },
        },
        { highWaterMark: 0 },
      );
    const handler = adminHandler(
      { ...gateway, steps: { ...gateway.steps, export: exported } },
      { authenticateAdmin: () => admin, onFailure: (failure) => failures.push(failure) },
    );
    const answer = await handler.fetch("http://ops.example/admin/v1/steps/export?format=csv");
    await expect(answer.text()).rejects.toThrow();
    expect(failures).toMatchObject([
      {
        requestId: answer.headers.get("x-request-id"),
        operation: "steps.export",
        code: "internal_error",
        where: expect.stringMatching("^TypeError"),
      },
    ]);
  });

  it("answers with 503 if the host takes longer than 10 seconds", async () => {
    const { call, clock } = await served({ authenticateAdmin: () => new Promise(() => {}) });
    const answer = call("/me");
    await clock.advance("11s");
    expect((await answer).status).toBe(503);
  });

  it("lets one operator run one summary at a time, and all together eight reads", async () => {
    const { gateway } = await createTestGateway();
    const held = Promise.withResolvers<readonly []>();
    const steps = { ...gateway.steps, summarize: () => held.promise };
    let actor = 0;
    const handler = adminHandler(
      { ...gateway, steps },
      {
        authenticateAdmin: (request) => {
          const named = request.headers.get("x-actor");
          return { ...admin, actor: named ?? `actor-${actor++}` };
        },
      },
    );
    const read = (name?: string) =>
      handler.fetch("http://ops.example/admin/v1/steps/summary", {
        headers: name === undefined ? {} : { "x-actor": name },
      });
    const ofOne = read("ada");
    const again = await read("ada");
    expect([again.status, again.headers.get("retry-after")]).toEqual([503, "1"]);
    const others = Array.from({ length: 7 }, () => read());
    expect((await read()).status).toBe(503);
    held.resolve([]);
    for (const answer of await Promise.all([ofOne, ...others])) expect(answer.status).toBe(200);
    expect((await read("ada")).status).toBe(200);
    await handler.close();
    expect((await read("ada")).status).toBe(503);
  });

  it("runs one maintenance operation at a time for all tokens", async () => {
    const { gateway } = await createTestGateway();
    const held = Promise.withResolvers<{ readonly counters: 0; readonly drift: readonly [] }>();
    const reconcile = vi.fn(() => held.promise);
    const sweep = vi.fn(async () => 0);
    const budgets = { ...gateway.budgets, reconcile };
    let actor = 0;
    const handler = adminHandler(
      { ...gateway, budgets, sweep },
      { authenticateAdmin: () => ({ ...admin, actor: `actor-${actor++}` }) },
    );
    const maintain = (operation: string) =>
      handler.fetch(`http://ops.example/admin/v1/maintenance/${operation}`, {
        method: "POST",
        headers: { ...json, authorization: "Bearer x" },
        body: "{}",
      });
    const first = maintain("reconcile");
    for (const operation of ["sweep", "recover", "reseal", "reconcile-usage", "reconcile"]) {
      const refused = await maintain(operation);
      expect([refused.status, refused.headers.get("retry-after")]).toEqual([503, "1"]);
      expect(await refused.json()).toMatchObject({ error: { code: "overloaded" } });
    }
    expect(sweep).not.toHaveBeenCalled();
    held.resolve({ counters: 0, drift: [] });
    expect((await first).status).toBe(200);
    expect((await maintain("sweep")).status).toBe(200);
    sweep.mockRejectedValueOnce(new Error("the store is gone"));
    expect((await maintain("sweep")).status).toBe(500);
    expect((await maintain("reconcile")).status).toBe(200);
    expect(reconcile).toHaveBeenCalledTimes(2);
  });

  it("lets the next maintenance operation run 15 minutes after one that hangs began", async () => {
    const { gateway, clock } = await createTestGateway();
    const hanging: PromiseWithResolvers<number>[] = [];
    const sweep = vi.fn(() => {
      const held = Promise.withResolvers<number>();
      hanging.push(held);
      return held.promise;
    });
    const handler = adminHandler({ ...gateway, sweep }, { authenticateAdmin: () => admin, clock });
    const maintain = () =>
      handler.fetch("http://ops.example/admin/v1/maintenance/sweep", {
        method: "POST",
        headers: { ...json, authorization: "Bearer x" },
        body: "{}",
      });
    const refusal = async () => {
      const refused = await maintain();
      return [refused.status, refused.headers.get("retry-after"), await refused.json()];
    };
    const running = (seconds: number) => {
      const message = `Another maintenance operation is running: try again when it ends, or in ${seconds} seconds at the latest.`;
      return [503, "1", { error: expect.objectContaining({ message }) }];
    };
    const first = maintain();
    await vi.waitFor(() => expect(sweep).toHaveBeenCalledTimes(1));
    await clock.advance("14m");
    expect(await refusal()).toEqual(running(60));
    await clock.advance("1m");
    const second = maintain();
    await vi.waitFor(() => expect(sweep).toHaveBeenCalledTimes(2));
    // The end of the first doesn't free the slot of the second.
    hanging[0]?.resolve(1);
    expect((await first).status).toBe(200);
    expect(await refusal()).toEqual(running(900));
    hanging[1]?.resolve(0);
    expect((await second).status).toBe(200);
  });

  it("refuses a read beyond the bound before its sign-in", async () => {
    const { gateway } = await createTestGateway();
    const held = Promise.withResolvers<readonly []>();
    const steps = { ...gateway.steps, summarize: () => held.promise };
    let signedIn = 0;
    const authenticateAdmin = () => ({ ...admin, actor: `actor-${signedIn++}` });
    const handler = adminHandler({ ...gateway, steps }, { authenticateAdmin });
    const read = () => handler.fetch("http://ops.example/admin/v1/steps/summary");
    const reads = Array.from({ length: 8 }, read);
    await vi.waitFor(() => expect(signedIn).toBe(8));
    await new Promise(setImmediate);
    expect((await read()).status).toBe(503);
    expect(signedIn).toBe(8);
    held.resolve([]);
    for (const answer of await Promise.all(reads)) expect(answer.status).toBe(200);
  });

  it("rests three times as long as reads take, and puts off the first tenth of a second", async () => {
    const { gateway, clock } = await createTestGateway();
    const begun: number[] = [];
    const start = clock.monotonic();
    const get: typeof gateway.keys.get = async (reference) => {
      begun.push(clock.monotonic() - start);
      await new Promise<void>((resolve) => clock.after(100, resolve));
      return gateway.keys.get(reference);
    };
    const keys = { ...gateway.keys, get };
    const handler = adminHandler({ ...gateway, keys }, { authenticateAdmin: () => admin, clock });
    const { key } = await gateway.keys.create({ organizationId: "acme", userId: "a", label: "b" });
    const read = () =>
      handler.fetch(`http://ops.example/admin/v1/keys/${key.id}?organizationId=acme`);
    const reads = [read(), read(), read()];
    for (let waited = 0; waited < 1_000; waited += 50) await clock.advance(50);
    expect((await Promise.all(reads)).map(({ status }) => status)).toEqual([200, 200, 200]);
    expect(begun).toEqual([0, 300, 700]);
  });

  it("reads a long page in pieces of 100 rows, with a rest after each", async () => {
    const { gateway, clock } = await createTestGateway();
    for (let made = 0; made < 230; made++)
      await gateway.keys.create({ organizationId: "acme", userId: "a", label: `${made}` });
    const limits: (number | undefined)[] = [];
    const list: typeof gateway.changes.list = (filter, paging) => {
      limits.push(paging?.limit);
      return gateway.changes.list(filter, paging);
    };
    const changes = { ...gateway.changes, list };
    const handler = adminHandler(
      { ...gateway, changes },
      { authenticateAdmin: () => admin, clock },
    );
    const answer = await handler.fetch("http://ops.example/admin/v1/changes?limit=220");
    const whole = await gateway.changes.list({ organizationId: everyOrganization }, { limit: 220 });
    expect(await answer.json()).toEqual(JSON.parse(JSON.stringify(whole)));
    expect(limits).toEqual([100, 100, 20]);
  });

  it("counts a series as a summary", async () => {
    const { gateway } = await createTestGateway();
    const held = Promise.withResolvers<readonly []>();
    const steps = { ...gateway.steps, series: () => held.promise };
    const handler = adminHandler({ ...gateway, steps }, { authenticateAdmin: () => admin });
    const read = () => handler.fetch("http://ops.example/admin/v1/steps/series?bucket=hour");
    const first = read();
    expect((await read()).status).toBe(503);
    held.resolve([]);
    expect((await first).status).toBe(200);
  });

  it("pages through own budgets and rate limits without naming others", async () => {
    const { call, gateway } = await served({
      authenticateAdmin: () => ({ actor: "ada", organizations: ["acme"], role: "viewer" }),
    });
    const scope = { organization: "acme" };
    for (const id of ["a-hidden", "b", "c-hidden", "d", "e-hidden"]) {
      const own = id.endsWith("hidden") ? {} : { scope };
      await gateway.budgets.create({ id, ...own, limit: { usd: 1 }, period: "day" });
      await gateway.rateLimits.create({ id: `${id}-2`, ...own, limit: { concurrentSteps: 1 } });
    }
    type Rows = { readonly data: readonly unknown[]; readonly nextCursor: string | null };
    const listed = async (path: string): Promise<Rows> =>
      JSON.parse(await (await call(path)).text());
    for (const path of ["/budgets", "/rate-limits"]) {
      const first = await listed(`${path}?limit=1`);
      expect(first.data).toMatchObject([{ id: expect.stringMatching(/^b/) }]);
      expect(`${Buffer.from(first.nextCursor ?? "", "base64url")}`).not.toContain("hidden");
      const second = await listed(`${path}?limit=1&cursor=${first.nextCursor}`);
      expect(second.data).toMatchObject([{ id: expect.stringMatching(/^d/) }]);
      expect(second.nextCursor).toBeNull();
    }
  });

  it("shows nobody the counters of another organization's removed budget or rate limit", async () => {
    const { gateway, chat } = await createTestGateway({ key: { organizationId: "rival" } });
    const handler = adminHandler(gateway, {
      authenticateAdmin: () => ({ actor: "ada", organizations: ["acme"], role: "admin" }),
    });
    const scope = { organization: "rival" };
    await gateway.budgets.create({ id: "b", scope, limit: { usd: 1 }, period: "day" });
    await gateway.rateLimits.create({ id: "r", scope, limit: { requests: 9 }, per: "day" });
    await (await gateway.fetch(chat())).text();
    await gateway.budgets.remove({ id: "b" });
    await gateway.rateLimits.remove({ id: "r" });
    const create = async (path: string, body: object) => {
      const own = { ...body, scope: { organization: "acme" } };
      const init = { method: "POST", body: JSON.stringify(own) };
      const headers = { ...json, authorization: "Bearer x" };
      return handler.fetch(`http://ops.example/admin/v1${path}`, { ...init, headers });
    };
    const budget = { id: "b", limit: { usd: 1 }, period: "day" };
    const rateLimit = { id: "r", limit: { requests: 9 }, per: "day" };
    for (const unused of [{}, { unused: false }]) {
      expect((await create("/budgets", { ...budget, ...unused })).status).toBe(400);
      expect((await create("/rate-limits", { ...rateLimit, ...unused })).status).toBe(400);
    }
    expect((await create("/budgets", { ...budget, id: "new" })).status).toBe(201);
  });

  it.each(["steps", "sessions"])(
    "withholds the content of %s if its reading can't be recorded",
    async (noun) => {
      const store = memoryStore();
      const { gateway, chat } = await createTestGateway({
        store: {
          ...store,
          evidence: { ...store.evidence, record: () => Promise.reject(new Error("full")) },
        },
      });
      const handler = adminHandler(gateway, {
        authenticateAdmin: () => ({ ...admin, transcripts: { upTo: "D3_RESTRICTED" } }),
      });
      const asked = chat({ messages: [{ role: "user", content: "canary-prompt" }] });
      await (await gateway.fetch(asked)).text();
      const [step] = (await gateway.steps.list({ organizationId: "organization-1" })).data;
      const path = noun === "steps" ? `${step?.id}/content` : `${step?.sessionId}/transcript`;
      const answer = await handler.fetch(`http://ops.example/admin/v1/${noun}/${path}`);
      expect(answer.status).toBe(503);
      expect(await answer.text()).not.toContain("canary-prompt");
    },
  );

  it("waits for open exports before it closes", async () => {
    const { handler, call } = await served();
    const reader = (await call("/steps/export?format=csv")).body?.getReader();
    const closed = vi.fn();
    const closing = handler.close().then(closed);
    await new Promise(setImmediate);
    expect(closed).not.toHaveBeenCalled();
    expect((await call("/me")).status).toBe(503);
    while (!(await reader?.read())?.done);
    await closing;
    expect(closed).toHaveBeenCalledTimes(1);
  });

  it("frees the slot of an export when it ends, and when its reader leaves", async () => {
    const { call } = await served();
    const exported = () => call("/steps/export?format=csv");
    for (let at = 0; at < 3; at++) expect((await (await exported()).text()).slice(0, 2)).toBe("id");
    for (let at = 0; at < 3; at++) await (await exported()).body?.cancel();
    expect((await exported()).status).toBe(200);
  });
});
