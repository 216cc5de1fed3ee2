#!/usr/bin/env node
import module from "node:module";

// Compiles the packages once per machine rather than at every start. Imports written above would not be cached.
module.enableCompileCache?.();
const { main } = await import("tollgate").catch((thrown) => {
  // Only a checkout has the command without its build.
  if (thrown.code !== "ERR_MODULE_NOT_FOUND" || !thrown.url?.endsWith("/dist/index.js"))
    throw thrown;
  console.error(
    "error: this checkout isn't built: run `npm run build`, or use `npm run -s tollgate -- …`",
  );
  process.exit(1);
});

await main(process.argv);
