// The program in each package's README: the shortest one that shows its purpose. The docs test runs them.

/** A program and its output; `prints` is null if the output differs from run to run. */
export interface PackageSnippet {
  readonly code: string;
  readonly prints: string | null;
}

const call = `const { secret } = await gateway.keys.create({ organizationId: "acme", userId: "ada", label: "laptop" });`;
const built = (store: string, name: string, options = ""): string => `
import { createGateway } from "@tollgate/core";
import { simProvider } from "@tollgate/provider-sim";
import { ${name} } from "${store}";

await using gateway = createGateway({ store: ${name}(${options}), providers: { sim: simProvider() } });
`;
const simulated = built("@tollgate/store-memory", "memoryStore");
const asked = `${call}
const answer = await gateway.fetch("http://in-process/v1/responses", {
  method: "POST",
  headers: { authorization: "Bearer " + secret, "content-type": "application/json" },
  body: JSON.stringify({ model: "sim/tollgate/echo", input: "Hello" }),
});
console.log(answer.status);
`;

/** The snippets by package name. */
export const packageSnippets: Readonly<Record<string, PackageSnippet>> = {
  "@tollgate/core": { code: `${simulated}${asked}`, prints: "200" },
  "@tollgate/provider-sim": { code: `${simulated}${asked}`, prints: "200" },
  "@tollgate/store-memory": { code: `${simulated}${asked}`, prints: "200" },
  "@tollgate/store-sqlite": {
    code: `${built("@tollgate/store-sqlite", "sqliteStore", '{ filename: "tollgate.db" }')}${asked}`,
    prints: "200",
  },
  "@tollgate/store-postgres": {
    code: `${built("@tollgate/store-postgres", "postgresStore", '{ url: "postgres://localhost/tollgate" }')}
// The store connects on the first request.
console.log(typeof gateway.fetch);
`,
    prints: "function",
  },
  "@tollgate/store-engine": {
    code: `
import { chainLength } from "@tollgate/store-engine";

// For authors of stores. Applications don't need this package.
console.log(chainLength(new Uint8Array(64)));
`,
    prints: "2",
  },
  "@tollgate/store-sql": {
    code: `
import { insertInto } from "@tollgate/store-sql";

// The SQLite and PostgreSQL stores use this package. Applications don't need it. The statements use ON CONFLICT,
// so a store on a database without it needs its own.
console.log(insertInto("notes", ["id", "text"]));
`,
    prints: null,
  },
  "@tollgate/provider-http": {
    code: `
import { createRequestHeaders } from "@tollgate/provider-http";

// The HTTP providers use this package. Applications don't need it.
console.log(createRequestHeaders()("sk-1", false).headers["accept"]);
`,
    prints: "application/json",
  },
  "@tollgate/provider-openai": {
    code: `
import { openaiCompatible } from "@tollgate/provider-openai";

// Pass it to createGateway({ providers: { openai } }).
const openai = openaiCompatible({
  baseURL: "https://api.openai.com/v1",
  apiKey: process.env["OPENAI_API_KEY"] ?? null,
  vendor: "openai",
});
console.log(typeof openai);
`,
    prints: null,
  },
  "@tollgate/provider-anthropic": {
    code: `
import { anthropic } from "@tollgate/provider-anthropic";

// Pass it to createGateway({ providers: { anthropic: claude } }).
const claude = anthropic({ apiKey: process.env["ANTHROPIC_API_KEY"] ?? null });
console.log(claude.vendor);
`,
    prints: "anthropic",
  },
  "@tollgate/provider-ai-sdk": {
    code: `
import { createMistral } from "@ai-sdk/mistral";
import { aiSdk } from "@tollgate/provider-ai-sdk";

// Pass it to createGateway({ providers: { mistral } }).
const mistral = aiSdk(({ fetch, credential }) => createMistral({ apiKey: credential, fetch }), {
  vendor: "mistral",
  apiKey: () => process.env["MISTRAL_API_KEY"] ?? "",
});
console.log(typeof mistral);
`,
    prints: null,
  },
  "@tollgate/prices": {
    code: `
import { catalogPrices } from "@tollgate/prices";

// Pass it to createGateway({ prices: catalogPrices() }). Rates are nanodollars per million tokens.
const model = { gateway: "openai", vendor: "openai", model: "gpt-5-mini" };
const price = catalogPrices().priceOf(model, Date.UTC(2026, 8, 1));
console.log(price?.input, price?.output);
`,
    prints: "250000000 2000000000",
  },
  "@tollgate/node": {
    code: `${simulated.replace("import { simProvider", 'import { serve } from "@tollgate/node";\nimport { simProvider')}
const server = await serve(gateway, { port: 0 });
const answer = await fetch(server.url + "/v1/models");
console.log(answer.status);
await server.close();
`,
    prints: "401",
  },
  "@tollgate/otel": {
    code: `
import { createGateway } from "@tollgate/core";
import { openTelemetry } from "@tollgate/otel";
import { simProvider } from "@tollgate/provider-sim";
import { memoryStore } from "@tollgate/store-memory";

const telemetry = openTelemetry();
await using gateway = createGateway({
  store: memoryStore(),
  providers: { sim: simProvider() },
  ...telemetry.options,
});
telemetry.watch(gateway);
console.log(gateway.status().openSteps);
`,
    prints: "0",
  },
  "@tollgate/express": {
    code: `${simulated.replace("import { simProvider", 'import { tollgate } from "@tollgate/express";\nimport { simProvider').replace('store-memory";\n', 'store-memory";\nimport express from "express";\n')}
const app = express();
app.use("/ai", tollgate(gateway)); // before the body parser
app.use(express.json());
const server = app.listen(0, () => server.close());
`,
    prints: null,
  },
  "@tollgate/fastify": {
    code: `${simulated.replace("import { simProvider", 'import { tollgate } from "@tollgate/fastify";\nimport { simProvider').replace('store-memory";\n', 'store-memory";\nimport fastify from "fastify";\n')}
const app = fastify();
await app.register(tollgate, { gateway, prefix: "/ai" });
const answer = await app.inject({ url: "/ai/v1/models" });
console.log(answer.statusCode);
`,
    prints: "401",
  },
  "@tollgate/next": {
    code: `
import { createGateway } from "@tollgate/core";
import { oneGateway, toNextHandlers } from "@tollgate/next";
import { simProvider } from "@tollgate/provider-sim";
import { memoryStore } from "@tollgate/store-memory";

// In app/ai/[...path]/route.ts
const gateway = oneGateway(() =>
  createGateway({ store: memoryStore(), providers: { sim: simProvider() } }),
);
export const { GET, POST, DELETE } = toNextHandlers(gateway);
`,
    prints: null,
  },
  "@tollgate/testing": {
    code: `
import { createTestGateway, expectDenied } from "@tollgate/testing";
import { definePolicy, forbid } from "@tollgate/core/policy";

// Runs in any test runner, without a network. The provider answers by script.
const { gateway, provider, chat } = await createTestGateway({
  policy: definePolicy({ rules: [forbid("nobody", {}, { reason: "closed" })] }),
});
await expectDenied(gateway, await gateway.fetch(chat()), { rule: "nobody" });
console.log(provider.calls.length);
`,
    prints: "0",
  },
  "@tollgate/admin": {
    code: `
import { adminHandler } from "@tollgate/admin";${simulated}
const admin = adminHandler(gateway, {
  // Your own sign-in. Without it, nothing is served.
  authenticateAdmin: () => ({ actor: "ada@acme", organizations: ["acme"], role: "viewer" }),
});
const answer = await admin.fetch("http://in-process/admin/v1/keys");
console.log(await answer.text());
`,
    prints: '{"data":[],"nextCursor":null}',
  },
  "@tollgate/conformance": {
    code: `
import type { OpenedStore } from "@tollgate/conformance/store-contract";
import { memoryStore } from "@tollgate/store-memory";

const open = async (): Promise<OpenedStore> => ({ store: memoryStore() });

// In a vitest file: describeStoreContract("my store", { open });
const { store } = await open();
console.log(store.contract);
`,
    prints: "1",
  },
  tollgate: {
    code: `
import { main } from "tollgate";

// The same as "npx tollgate keys create …". "npx tollgate serve" runs a gateway.
const words = ["keys", "create", "--organization", "acme", "--user", "ada", "--label", "laptop"];
await main(["node", "tollgate", ...words]);
`,
    prints: null,
  },
};
