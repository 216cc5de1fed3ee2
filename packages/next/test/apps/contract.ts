import { createServer } from "node:http";
import { createRequire } from "node:module";
import type { AddressInfo } from "node:net";
import { describeBindingContract } from "@tollgate/conformance/binding-contract";
import { toNextHandlers } from "@tollgate/next";
import { openaiCompatible } from "@tollgate/provider-openai";
import { afterAll, beforeAll } from "vitest";

/** The part of Next's own server that this test uses. */
type CreateNext = (options: { readonly dir: string; readonly dev: boolean }) => {
  prepare(): Promise<void>;
  getRequestHandler(): Parameters<typeof createServer>[1];
  close(): Promise<void>;
};

const version = process.env["NEXT_VERSION"] ?? "16";
const dir = `${import.meta.dirname}/next-${version}`;
const createNext: CreateNext = createRequire(`${dir}/`)("next");
const app = createNext({ dir, dev: false });

beforeAll(() => app.prepare(), 30_000);
afterAll(() => app.close());

describeBindingContract(`next ${version}, built and started`, {
  provider: (baseURL) => openaiCompatible({ baseURL, apiKey: "sk-platform" }),
  async serve(gateway, { writeStall }) {
    Reflect.set(globalThis, "tollgateHandlers", toNextHandlers(gateway, { writeStall }));
    const server = createServer(app.getRequestHandler());
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as AddressInfo;
    return {
      url: `http://127.0.0.1:${port}`,
      close: () =>
        new Promise((resolve) => {
          server.close(() => resolve());
          server.closeAllConnections();
        }),
    };
  },
});
