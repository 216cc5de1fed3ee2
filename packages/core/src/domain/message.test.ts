import { expect, it } from "vitest";
import type { Message } from "./message.ts";
import { imagesAfterTools } from "./message.ts";

const image = { type: "image_url", image_url: { url: "https://x.test/a.png" } } as const;
const text = { type: "text", text: "A cat." } as const;
const tool = (id: string, content: Extract<Message, { role: "tool" }>["content"]): Message => ({
  role: "tool",
  tool_call_id: id,
  content,
});

it("moves the images of several tool messages into one user message after them", () => {
  const before: Message = { role: "user", content: [image] };
  const after: Message = { role: "assistant", content: "Two cats." };
  const messages = [before, tool("1", [text, image]), tool("2", [image]), tool("3", "x"), after];
  expect(imagesAfterTools(messages)).toEqual([
    before,
    tool("1", [text]),
    tool("2", "The images that the function returned follow."),
    tool("3", "x"),
    { role: "user", content: [image, image] },
    after,
  ]);
  expect(imagesAfterTools([tool("1", [image])])).toHaveLength(2);
});
