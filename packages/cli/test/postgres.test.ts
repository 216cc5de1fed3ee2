import { fileURLToPath } from "node:url";
import { startPostgres } from "@tollgate/testing/postgres";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { run, temporaryFolder } from "./command-line.ts";

const configuration = fileURLToPath(new URL("./postgres.config.ts", import.meta.url));

describe("the command line with PostgreSQL in its configuration", () => {
  const folder = temporaryFolder();
  const starting = startPostgres();
  beforeAll(() => starting, 30_000);
  afterAll(async () => (await starting).stop());
  const tollgate = async (...words: readonly string[]) =>
    run(folder, ["--config", configuration, "--json", ...words], {
      DATABASE_URL: (await starting).url,
    });

  it("reports a missing schema in a check, creates it and keeps keys in it", async () => {
    const before = await tollgate("migrate", "--check");
    expect(before.code).toBe(1);
    expect(before.errors).toContain("schema tollgate_cli does not exist");
    expect((await tollgate("migrate")).code).toBe(0);
    expect((await tollgate("migrate", "--check")).code).toBe(0);
    const names = ["--organization", "acme", "--user", "ada", "--label", "laptop"];
    expect((await tollgate("keys", "create", ...names)).code).toBe(0);
    const listed: unknown = JSON.parse((await tollgate("keys", "list")).output);
    expect(listed).toMatchObject({ data: [{ label: "laptop" }] });
  }, 30_000);
});
