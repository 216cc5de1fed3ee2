import { describe, expect, it } from "vitest";
import { parseBaseUrl } from "./configuration.ts";

describe("a base URL (S6)", () => {
  it("consists of a scheme, a host and a path", () => {
    expect(parseBaseUrl("https://api.example.com/v1/")).toEqual({
      origin: "https://api.example.com",
      host: "api.example.com",
      path: "/v1",
    });
    expect(parseBaseUrl("http://[::1]:8080")).toEqual({
      origin: "http://[::1]:8080",
      host: "[::1]:8080",
      path: "",
    });
  });

  it("is refused if it is ambiguous", () => {
    for (const text of [
      undefined,
      "",
      "api.example.com",
      "ftp://a",
      "//a/v1",
      "https://",
      "https://a b/v1",
      "https://x#.azure.example/v1",
      "https://x?.azure.example/v1",
      "https://key@host/v1",
      "https://user:key@host/v1",
      "https://a\\b/v1",
      "https://a/v1?key=1",
      "https://a/v1#",
      " https://a/v1",
      "https://a/v1\n",
      "https://a:99999/v1",
      "https://ä.example/v1",
      "https://a%2eb/v1",
      "file:///etc/passwd",
    ])
      expect(parseBaseUrl(text), String(text)).toBeNull();
  });
});
