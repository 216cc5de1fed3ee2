#!/usr/bin/env node
import { main } from "tollgate";

await main(process.argv);
