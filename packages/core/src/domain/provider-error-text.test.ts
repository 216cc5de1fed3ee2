import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { errorText, secretHeaders } from "./provider-error-text.ts";

const credential = "sk-proj-Abc123Def456Ghi789";

describe("the text of a provider's error", () => {
  it.each([
    [{ error: { message: "Too long.", code: 1 } }, "Too long."],
    [{ error: "Overloaded" }, "Overloaded"],
    [{ message: "No such model" }, "No such model"],
    [
      { detail: [{ loc: ["body"], msg: "required" }] },
      '{"detail":[{"loc":["body"],"msg":"required"}]}',
    ],
    [{ error: { message: "Failed", metadata: { raw: '{"type":"x"}' } } }, 'Failed: {"type":"x"}'],
    ["<p>Bad\r\n\u0000\u009b31m\u202e gateway</p>", "<p>Bad 31m gateway</p>"],
    ["\ud800 half", "\ufffd half"],
    ["", null],
    [" \n", null],
    [null, null],
    [undefined, null],
    [7, null],
  ])("of %j is %j", (said, text) => {
    expect(errorText(said)).toBe(text);
  });

  it.each([
    [`Incorrect API key provided: ${credential}.`, "Incorrect API key provided: [removed]."],
    ["Incorrect API key provided: abcd****wxyz.", "Incorrect API key provided: [removed]"],
    [`you sent "${credential.slice(0, 12)}..."`, 'you sent "[removed]..."'],
    ["Authorization: Bearer q8Zr5kd91", "Authorization: Bearer [removed]"],
    ["x-api-key=plain&model=a", "x-api-key=[removed]&model=a"],
    [
      "GET https://h/v1?key=hunter2&alt=sse failed",
      "GET https://h/v1?key=[removed]&alt=sse failed",
    ],
    ["at https://ada:hunter2@h/v1", "at https://[removed]@h/v1"],
    ["at https://ada:hun,t(er;'2@h/v1", "at https://[removed]@h/v1"],
    [String.raw`at https:\/\/ada:hunter2@h\/v1`, String.raw`at https:\/\/[removed]@h\/v1`],
    ['{"url":"https://h","by":"a@b.c"}', '{"url":"https://h","by":"a@b.c"}'],
    ["AIzaSyA1234567890abcdefghij", "[removed]"],
    ["eyJhbGciOiJI.eyJzdWIi.c2ln", "[removed]"],
    ["hash 0123456789abcdef0123456789abcdef", "hash [removed]"],
    ["(ghp_abcdefgh12345678)", "([removed])"],
    ['bad {"password":"hunter2","n":1}', 'bad {"password":"[removed]","n":1}'],
    ["bad {'api_key': 'hunter 2'}", "bad {'api_key': '[removed]'}"],
    [String.raw`bad {\"token\": \"hunter2\"}`, String.raw`bad {\"token\": \"[removed]\"}`],
  ])("removes secrets from %j", (said, text) => {
    expect(errorText(said, [credential])).toBe(text);
  });

  it.each([
    "This model's maximum context length is 131072 tokens. However, you requested 200000 tokens.",
    "The model `claude-3-5-sonnet-20241022` does not exist",
    "messages.3.content.0.tool_use.id: String should match pattern",
    "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
    "Bearer authentication required",
    "See https://platform.openai.com/docs/guides/error-codes/api-errors.",
    "Rate limit reached for gpt-5 in organization org-acme on tokens per min (TPM): Limit 30000",
  ])("keeps the description of the problem: %j", (said) => {
    expect(errorText(said, [credential])).toBe(said);
  });

  it.each([
    ["GET /x?auth=ab%2Bcd%2Fef%3D%3Dghi failed", "ab+cd/ef==ghi", "GET /x?auth=[removed] failed"],
    [String.raw`{"sent":"ab\/cdefg\/hijkl\/mnop"`, "ab/cdefg/hijkl/mnop", '{"sent":"[removed]"'],
    [{ error: { sent: 'abcd"efgh"ijkl"mn' } }, 'abcd"efgh"ijkl"mn', '{"sent":"[removed]"}'],
  ])("removes a credential however %j writes it", (said, secret, text) => {
    expect(errorText(said, [secret])).toBe(text);
  });

  it("is at most 2 KiB long and well-formed, whatever the upstream said", () => {
    fc.assert(
      fc.property(
        fc.string({ unit: "binary", maxLength: 4_000 }),
        fc.constantFrom("ä", "x ", "\u{1f600}", "\ud83d"),
        fc.nat(20_000),
        (text, unit, times) => {
          const kept = errorText(text + unit.repeat(times)) ?? "";
          expect(Buffer.byteLength(kept)).toBeLessThanOrEqual(2_048);
          expect(kept.isWellFormed()).toBe(true);
          expect(kept).not.toMatch(/\p{Cc}/u);
          expect(errorText(kept) ?? "").toBe(kept);
        },
      ),
      { numRuns: 200 },
    );
  });

  it("contains no 8 consecutive characters of a credential, wherever it is cut", () => {
    const secret = fc.string({
      unit: fc.constantFrom(..."abcXYZ019-_+/="),
      minLength: 8,
      maxLength: 80,
    });
    fc.assert(
      fc.property(
        secret,
        fc.string(),
        fc.string(),
        fc.nat(80),
        fc.nat(80),
        (key, a, b, from, to) => {
          const text = errorText(
            a + key.slice(Math.min(from, key.length - 8)) + b + key.slice(0, to),
            [key],
          );
          for (let at = 0; at + 8 <= key.length; at++)
            expect(text ?? "").not.toContain(key.slice(at, at + 8));
        },
      ),
      { numRuns: 300 },
    );
  });

  it("contains no part of a secret that the limit cuts", () => {
    const text = `${"a ".repeat(8_188)}${credential}`;
    expect(errorText(text.slice(0, 16_384) + credential)).not.toContain("sk-");
  });

  it("takes linear time", () => {
    for (const unit of ["a", "sk-", "://", "@", "key=", "a:", "-_", "eyJ."])
      expect(errorText(unit.repeat(200_000), [unit.repeat(3_000)]) ?? "").toMatch(/^.{0,2048}$/u);
  });
});

it("finds the credentials among headers by their names", () => {
  const headers = { authorization: "Bearer abcd", "X-Api-Key": "defg", accept: "application/json" };
  expect(secretHeaders(headers)).toEqual(["abcd", "defg"]);
  const others = { cookie: "session=s3cr3t; id=abcd==", "x-api-key": " padded ", "x-token": "1" };
  expect(secretHeaders(others)).toEqual(["s3cr3t", "abcd==", "padded"]);
});
