import { expect, it } from "vitest";
import { type CsvField, csvRecord } from "./csv.ts";

it.each<[readonly CsvField[], string]>([
  [[], "\r\n"],
  [["a", 1, true, null, ""], "a,1,true,,\r\n"],
  [["a,b", 'say "hi"', "two\r\nlines", "\n"], '"a,b","say ""hi""","two\r\nlines","\'\n"\r\n'],
  [["=1+1", "+1", "-1+1", "@SUM(A1)"], "'=1+1,'+1,'-1+1,'@SUM(A1)\r\n"],
  [["-1", "-0.000000001", "-1.", "-A1", "-1\n"], "-1,-0.000000001,'-1.,'-A1,\"'-1\n\"\r\n"],
  [["\t=1", "\r=1", '="a,b"'], '\'\t=1,"\'\r=1","\'=""a,b"""\r\n'],
  [[-1, "a=1", " =1", "\u{1f600}"], "-1,a=1, =1,\u{1f600}\r\n"],
])("writes %j as %j", (fields, expected) => {
  expect(csvRecord(fields)).toBe(expected);
});
