import { describe, expect, it } from "vitest";
import { pathAfterV1, queryOf } from "./path-after-v1.ts";

describe("pathAfterV1", () => {
  it.each([
    ["http://host/v1/chat/completions", "chat/completions"],
    ["https://host:8080/mounted/here/v1/chat/completions?x=/v1/y#z", "chat/completions"],
    ["/v1/models", "models"],
    ["http://host/v1/models/sim/acme/echo", "models/sim/acme/echo"],
    ["http://host/v1/models/sim%2Facme%2Fecho", "models/sim%2Facme%2Fecho"],
    ["http://host/v1/v1/models", "models"],
    ["http://host/v1/models/acme/x/v1/y", "models/acme/x/v1/y"],
    ["http://host/v1/v1/models/acme/x/v1/models/y", "models/acme/x/v1/models/y"],
    ["http://host/v1/models/acme/x/v1/chat/completions", "models/acme/x/v1/chat/completions"],
    ["http://host/v1/chat%2fcompletions", "chat%2fcompletions"],
    ["http://host/v1/CHAT/completions", "CHAT/completions"],
  ])("of %j is %j", (url, route) => {
    expect(pathAfterV1(url)).toBe(route);
  });

  it.each([
    "http://host/",
    "http://host",
    "http://host/v1",
    "http://host/v1/",
    "http://host/V1/models",
    "http://host/v2/models",
    "http://host/?/v1/models",
    "http://host/v1/models/",
    "http://host//v1/models",
    "http://host/v1//models",
    "http://host/v1/models;x=1",
    "http://host/v1/x/../models",
    "http://host/v1/./models",
    "/a://host/v1/models",
    "http://host/v1/models/..",
    "http://host/v1\\models",
    "http://host/%2fv1%2fmodels",
    "http://v1/models",
    // A URL parser finds the host `v1` and the path `/models`.
    "http:///v1/models",
    "https:////v1/models",
    "",
  ])("finds no path in %j", (url) => {
    expect(pathAfterV1(url)).toBeNull();
  });
});

describe("queryOf", () => {
  it.each([
    ["http://256.256.256.256/v1/responses/r?stream=true&x=%20", { stream: "true", x: " " }],
    ["/v1/responses/r?after=a?b#?c=d", { after: "a?b" }],
    ["/v1/responses/r#?c=d", {}],
    ["/v1/responses/r", {}],
  ])("of %j is %j", (url, parameters) => {
    expect(Object.fromEntries(queryOf(url))).toEqual(parameters);
  });
});
