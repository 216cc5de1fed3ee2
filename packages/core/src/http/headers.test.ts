import { describe, expect, it } from "vitest";
import { bearerToken, requireSmallHeaders } from "./headers.ts";

describe("bearerToken", () => {
  it("reads the token, whatever the case of the scheme", () => {
    expect(bearerToken(new Headers({ authorization: "Bearer tg_abc" }))).toBe("tg_abc");
    expect(bearerToken(new Headers({ authorization: "bearer a-._~+/==" }))).toBe("a-._~+/==");
  });

  it.each([
    "",
    "Bearer",
    "Bearer  two-spaces",
    "Bearer a b",
    "Bearer\ta",
    "Basic dTpw",
    "tg_abc",
    "Bearer a, Bearer b",
    "Bearer a;b",
    "Bearer 'a' OR 1=1",
    "Bearer \u00e9",
  ])("finds no token in %j", (authorization) => {
    expect(bearerToken(new Headers({ authorization }))).toBeNull();
  });

  it("finds no token without the header, or with two of them", () => {
    expect(bearerToken(new Headers())).toBeNull();
    const two = new Headers([
      ["authorization", "Bearer a"],
      ["authorization", "Bearer a"],
    ]);
    expect(bearerToken(two)).toBeNull();
  });
});

describe("requireSmallHeaders", () => {
  it("counts names and values as sent", () => {
    const request = new Request("http://gateway/", { headers: { a: "12345", bb: "1" } });
    expect(() => requireSmallHeaders(request, 17)).not.toThrow();
    expect(() => requireSmallHeaders(request, 16)).toThrow(
      expect.objectContaining({ code: "request_too_large", status: 413 }),
    );
  });
});
