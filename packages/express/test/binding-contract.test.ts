import { describeBindingContract } from "@tollgate/conformance/binding-contract";
import { openaiCompatible } from "@tollgate/provider-openai";
import express5 from "express";
import express4 from "express-4";
import { tollgate } from "../src/index.ts";
import { serveApp } from "./serve-app.ts";

for (const [version, express] of [
  ["4", express4],
  ["5", express5],
] as const) {
  describeBindingContract(`express ${version}`, {
    provider: (baseURL) => openaiCompatible({ baseURL, apiKey: "sk-platform" }),
    serve: (gateway, { prefix, writeStall }) =>
      serveApp(express().use(prefix, tollgate(gateway, { writeStall }))),
  });

  describeBindingContract(`express ${version}, after express.json()`, {
    body: "parsed",
    provider: (baseURL) => openaiCompatible({ baseURL, apiKey: "sk-platform" }),
    serve: (gateway, { prefix, writeStall }) => {
      const app = express().use(express.json({ limit: "32mb" }));
      return serveApp(app.use(prefix, tollgate(gateway, { writeStall })));
    },
  });
}
