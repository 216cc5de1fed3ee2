import { describeProviderContract } from "@tollgate/conformance/provider-contract";
import { aiSdk } from "../src/index.ts";
import { anthropic } from "./native/anthropic.ts";
import { cohere } from "./native/cohere.ts";
import { google } from "./native/google.ts";
import { mistral } from "./native/mistral.ts";

for (const { name, connect, fixtures } of [anthropic, google, mistral, cohere])
  describeProviderContract(`aiSdk over ${name}'s protocol`, {
    create: ({ url, connection, credential }) =>
      aiSdk(connect(url), {
        connection,
        ...(connection === "platform" ? { apiKey: credential } : {}),
      }),
    fixtures,
  });
