import fc from "fast-check";
import { expect, it } from "vitest";
import { columnTypes } from "../database/values.ts";
import { binaryRows } from "./binary-rows.ts";

const type = { typeId: 1, columns: [["a", "text"] as const, ["b", "bytes"] as const] };
const textOf = columnTypes.getTypeParser(25);

/** The columns of each row after the array's header of 20 bytes. */
function* columnsOf(array: Buffer) {
  for (let at = 20; at < array.length; ) {
    const columns: Buffer[] = [];
    const count = array.readInt32BE(at + 4);
    at += 8;
    for (let column = 0; column < count; column++) {
      const length = array.readInt32BE(at + 4);
      columns.push(array.subarray(at + 8, at + 8 + length));
      at += 8 + length;
    }
    yield columns;
  }
}

it("writes texts and bytes of any length, one row after the other", () => {
  const unit = fc.constantFrom("a", " ", "~", "\u0000", "\u001a", "\u007f", "é", "\u{1f600}");
  const text = fc.string({ unit, maxLength: 200, size: "max" });
  const bytes = fc.uint8Array({ maxLength: 3_000, size: "max" });
  fc.assert(
    fc.property(fc.array(fc.record({ a: text, b: bytes }), { minLength: 1 }), (rows) => {
      const array = binaryRows(
        type,
        rows.map((row, at) => ({ place: at + 1, row })),
      );
      const read = [...columnsOf(array)].map(([place, a, b]) => ({
        place: Number(place?.readBigInt64BE()),
        a: textOf(String(a)),
        b: new Uint8Array(b ?? []),
      }));
      expect(read).toEqual(rows.map((row, at) => ({ place: at + 1, ...row })));
    }),
  );
});
