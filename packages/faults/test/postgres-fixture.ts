import { randomBytes } from "node:crypto";
import { type PostgresPool, postgresStore } from "@tollgate/store-postgres";
import pg from "pg";
import { inject, onTestFinished } from "vitest";
import type { Product, ProductOptions } from "../src/product.ts";
import { type TcpProxy, tcpProxy } from "../src/tcp-proxy.ts";
import { startProduct } from "./fixture.ts";

type Script = Parameters<typeof startProduct>[0];

export const freshSchema = (): string => `faults_${randomBytes(6).toString("hex")}`;

/** A product on its own schema. */
export function productOn(
  url: string,
  script: Script,
  options: ProductOptions = {},
): Promise<Product> {
  const schema = freshSchema();
  return startProduct(script, { store: () => postgresStore({ url }, { schema }), ...options });
}

/** A product whose pool the test can use too. `around` can wrap the pool for the store. */
export async function productOnPool(
  script: Script,
  { maxConnections = 10, around = (pool) => pool }: TestPoolOptions = {},
): Promise<{ readonly product: Product; readonly pool: pg.Pool }> {
  const pool = new pg.Pool({ connectionString: inject("postgresUrl"), max: maxConnections });
  onTestFinished(() => pool.end());
  const schema = freshSchema();
  const product = await startProduct(script, {
    store: () => postgresStore({ pool: around(pool) }, { schema }),
  });
  return { product, pool };
}

interface TestPoolOptions {
  readonly maxConnections?: number;
  readonly around?: (pool: PostgresPool) => PostgresPool;
}

/** A product that reaches its database through a proxy that can be broken. */
export async function productByProxy(
  script: Script,
): Promise<{ readonly product: Product; readonly proxy: TcpProxy }> {
  const { url, proxy } = await proxied();
  return { product: await productOn(url, script), proxy };
}

/** A proxy to the test server that can be broken. */
export async function proxied(): Promise<{ readonly url: string; readonly proxy: TcpProxy }> {
  const address = new URL(inject("postgresUrl"));
  const proxy = await tcpProxy(Number(address.port));
  onTestFinished(() => proxy.close());
  address.port = String(proxy.port);
  return { url: address.href, proxy };
}

/** Runs statements that bypass the store. */
export async function directly(url: string, ...statements: readonly string[]): Promise<void> {
  const client = new pg.Client(url);
  client.on("error", () => {});
  await client.connect();
  for (const statement of statements) await client.query(statement);
  await client.end();
}
