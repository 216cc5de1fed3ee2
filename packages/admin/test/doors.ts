import {
  type AdministrationSource,
  describeAdministration,
} from "@tollgate/conformance/administration-contract";
import { tollgate } from "@tollgate/express";
import { serve } from "@tollgate/node";
import express from "express";
import { expect } from "vitest";
import { serveApp as serveExpress } from "../../express/test/serve-app.ts";
import { serveApp as serveFastify } from "../../fastify/test/serve-app.ts";
import { serveRouteModule } from "../../next/test/route-module.ts";
import { checkAnswer } from "./documented-answers.ts";

type Serve = NonNullable<AdministrationSource["serve"]>;

/** Every way to reach the admin API. */
const doors: Readonly<Record<string, Serve>> = {
  fetch: async (admin) => ({
    url: "http://localhost",
    fetch: async (request) => admin.fetch(request),
    close: async () => {},
  }),
  node: (admin, { writeStall }) => serve(admin, { port: 0, limits: { writeStall, closing: 1 } }),
  express: (admin, { prefix, writeStall }) =>
    serveExpress(express().use(prefix, tollgate(admin, { writeStall }))),
  fastify: serveFastify,
  next: serveRouteModule,
};

/**
 * Declares the conformance suite of the administration on a store: in process, and through the client over every binding.
 * There it holds every answer to the OpenAPI document.
 */
export function describeEveryDoor(store: string, { open }: Pick<AdministrationSource, "open">) {
  const source = open === undefined ? {} : { open };
  describeAdministration(store, source);
  for (const [name, door] of Object.entries(doors))
    describeAdministration(`${store} through ${name}`, { ...source, serve: documented(door) });
}

/** A door that fails when it closes if it has given an answer which the OpenAPI document doesn't describe. */
function documented(door: Serve): Serve {
  return async (admin, mounting) => {
    const served = await door(admin, mounting);
    const { fetch: fetchWith = fetch } = served;
    const checks: Promise<void>[] = [];
    return {
      ...served,
      async fetch(request) {
        const answer = await fetchWith(request);
        checks.push(checkAnswer(request, answer.clone()));
        return answer;
      },
      async close() {
        const checked = await Promise.allSettled(checks);
        await served.close();
        expect(checked.filter(({ status }) => status === "rejected")).toEqual([]);
      },
    };
  };
}
