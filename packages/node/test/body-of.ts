import type { StreamBody } from "@tollgate/core";

/** A body that writes texts one after the other, and ends the iteration when the client disconnects. */
export function bodyOf(texts: AsyncGenerator<string>): StreamBody {
  return {
    byteLength: null,
    async start(sink) {
      try {
        for await (const text of texts) await sink.write(text);
        sink.end();
      } catch (thrown) {
        sink.fail(thrown);
      }
    },
    leave: () => void texts.return(undefined),
  };
}
