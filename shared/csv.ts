/**
 * Rows as CSV (RFC 4180) under the names of the first one's fields. A spreadsheet would run a text that begins like a
 * formula, and others choose texts: it gets an apostrophe in front.
 */
export function toCsv(rows: readonly object[]): string {
  const names = Object.keys(rows[0] ?? {});
  const lines = rows.map((row) => names.map((name) => toCell(row[name as keyof typeof row])));
  return [names, ...lines].map((cells) => `${cells.join()}\r\n`).join('');
}

function toCell(value: unknown): string {
  if (typeof value !== 'string') return String(value ?? '');
  const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
