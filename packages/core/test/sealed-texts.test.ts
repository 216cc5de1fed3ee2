import { createTestGateway } from "@tollgate/testing";
import { describe, expect, it, onTestFinished } from "vitest";

type Block = Readonly<Record<string, unknown>>;

describe("the sealed texts of one request", () => {
  /** A gateway that has issued a block with a sealed text. */
  async function start() {
    const { gateway, provider, chat } = await createTestGateway();
    onTestFinished(() => gateway.close());
    const thought = { type: "thinking", thinking: "Hm.", signature: "s" };
    provider.reply({ text: "Yes.", state: { thinking_blocks: [thought] } });
    const answer = await gateway.fetch(chat({ messages: [{ role: "user", content: "Why?" }] }));
    const block: Block = JSON.parse(await answer.text()).choices[0].message.thinking_blocks[0];

    /** Starts a conversation with these blocks, and returns how many of each message are sent upstream. */
    const sent = async (...lists: readonly (readonly Block[])[]) => {
      const messages = lists.flatMap((blocks, at) => [
        { role: "user", content: `Question ${at} of ${lists.length}` },
        { role: "assistant", content: "Yes.", thinking_blocks: blocks },
      ]);
      const last = { role: "user", content: "And then?" };
      const asked = chat({ messages: [...messages, last] });
      expect((await gateway.fetch(asked)).status).toBe(200);
      return provider.calls.at(-1)?.request.messages.flatMap((message) => {
        if (message.role !== "assistant") return [];
        const blocks = message.state?.fields["thinking_blocks"];
        return Array.isArray(blocks) ? blocks.length : 0;
      });
    };
    return { sent, block };
  }

  it("are opened up to 4,096, from the latest message back", async () => {
    const { sent, block } = await start();
    const most = Array<Block>(4_096).fill(block);
    expect(await sent(most)).toEqual([4_096]);
    expect(await sent([...most, block])).toEqual([0]);
    expect(await sent([block], most)).toEqual([0, 4_096]);
    expect(await sent([block], most.slice(1))).toEqual([1, 4_095]);
  });

  it("are opened only up to the first one in a field that doesn't open", async () => {
    const { sent, block } = await start();
    const forged = { ...block, signature: `${block["signature"]}, changed` };
    expect(await sent([block], Array<Block>(5_000).fill(forged))).toEqual([1, 0]);
  });
});
