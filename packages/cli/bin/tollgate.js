#!/usr/bin/env node
import module from "node:module";

// Compiles the packages once per machine rather than at every start. Imports written above would not be cached.
module.enableCompileCache?.();
const { main } = await import("tollgate");

await main(process.argv);
