import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { run, temporaryFolder } from "./command-line.ts";

it("loads TypeScript from a folder without packages, uses the command line's packages and names missing ones", async () => {
  const folder = temporaryFolder();
  writeFileSync(
    join(folder, "tollgate.config.ts"),
    `import { simProvider } from "@tollgate/provider-sim";
import { memoryStore } from "@tollgate/store-memory";
const pace: number = 0;
export default { store: memoryStore(), providers: { sim: simProvider({ pace }) } };
`,
  );
  // Node would print a warning to standard error.
  expect(await run(folder, ["check", "--strict"])).toMatchObject({ code: 0, errors: "" });
  writeFileSync(join(folder, "tollgate.config.ts"), 'import "@tollgate/nothing";\n');
  const { code, errors } = await run(folder, ["keys", "list"]);
  expect(code).toBe(1);
  expect(errors).toContain("Cannot find package '@tollgate/nothing' imported from");
  expect(errors).toContain(`${folder}/tollgate.config.ts\n`);
});
