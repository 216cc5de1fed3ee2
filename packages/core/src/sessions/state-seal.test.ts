import { expect, it } from "vitest";
import { mapOpaque } from "./state-seal.ts";

const marked = (name: string, value: Parameters<typeof mapOpaque>[1]) =>
  mapOpaque(name, value, (text) => (text === "gone" ? null : `<${text}>`));

it("only texts that the provider alone can read are replaced, however deep they are", () => {
  const details = [
    { type: "reasoning", signature: "s", text: "t", index: 0, empty: null },
    { data: "d", nested: { encrypted_content: "e", thoughtSignature: "i", other: ["o"] } },
    { thought_signature: "u", provider_metadata: ["p", { plain: "q" }], signature: "" },
  ];
  expect(marked("details", details)).toEqual([
    { type: "reasoning", signature: "<s>", text: "t", index: 0, empty: null },
    { data: "<d>", nested: { encrypted_content: "<e>", thoughtSignature: "<i>", other: ["o"] } },
    { thought_signature: "<u>", provider_metadata: ["<p>", { plain: "q" }], signature: "" },
  ]);
});

it("every text in extra_content is replaced", () => {
  const extra = { google: { any: ["a", { b: "c" }], none: null, flag: true, count: 1 } };
  expect(marked("extra_content", extra)).toEqual({
    google: { any: ["<a>", { b: "<c>" }], none: null, flag: true, count: 1 },
  });
  expect(marked("other", { extra_content: "x" })).toEqual({ extra_content: "<x>" });
  expect(marked("signature", "x")).toBe("<x>");
  expect(marked("text", "x")).toBe("x");
});

it("without one of its texts, the whole value is gone", () => {
  for (const value of ["gone", ["a", "gone"], { a: { b: ["gone"] } }])
    expect(marked("extra_content", value)).toBeUndefined();
  expect(marked("extra_content", { a: undefined })).toEqual({});
  // The texts after it are skipped, because opening each may take a while.
  const looked: string[] = [];
  mapOpaque("extra_content", ["a", "gone", ["b"], "c"], (text) => {
    looked.push(text);
    return text === "gone" ? null : text;
  });
  expect(looked).toEqual(["a", "gone"]);
});
