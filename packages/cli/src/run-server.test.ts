import { expect, it } from "vitest";
import { serverSettings } from "./run-server.ts";

it("overrides each setting of the configuration file from the command line", () => {
  const configured = {
    port: 1,
    host: "::1",
    closeWithin: 2,
    drainDelay: 1,
    limits: { connections: 3 },
  };
  expect(serverSettings(configured, {})).toEqual(configured);
  expect(serverSettings(configured, { port: 0 })).toEqual({ ...configured, port: 0 });
  const all = { host: "0.0.0.0", closeWithin: 4, drainDelay: 3, log: "requests" } as const;
  expect(serverSettings({}, all)).toEqual(all);
});
