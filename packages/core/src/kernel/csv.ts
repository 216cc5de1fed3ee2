/** A value of a CSV field. */
export type CsvField = string | number | boolean | null;

/**
 * One record of a CSV file (RFC 4180), with its line break. Text that a spreadsheet would read as a formula starts with an
 * apostrophe, which spreadsheets hide. Numbers stay numbers, even as text, such as `-0.000000001`.
 */
export function csvRecord(fields: readonly CsvField[]): string {
  return `${fields.map(fieldText).join(",")}\r\n`;
}

function fieldText(field: CsvField): string {
  if (field === null) return "";
  if (typeof field !== "string") return String(field);
  const text = /^(?!-\d+(?:\.\d+)?$)[=+\-@\t\r\n]/.test(field) ? `'${field}` : field;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
