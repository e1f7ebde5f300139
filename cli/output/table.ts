interface List<Row> {
  json: boolean | undefined;
  /** Printed to standard error when there are no rows. */
  none: string;
  columns: Record<string, (row: Row) => string | null>;
}

/** Prints rows as a table, or as JSON. */
export function printList<Row>(rows: readonly Row[], { json, none, columns }: List<Row>): void {
  if (json) process.stdout.write(`${JSON.stringify(rows, null, 2)}\n`);
  else if (rows.length === 0) process.stderr.write(`${none}\n`);
  else {
    const cells = rows.map((row) => Object.values(columns).map((read) => read(row)));
    process.stdout.write(renderTable(Object.keys(columns), cells));
  }
}

/** Lines of aligned columns under their names; `-` stands for a missing value. */
export function renderTable(names: readonly string[], rows: readonly (readonly (string | null)[])[]): string {
  const lines = [
    names.map((name) => name.toUpperCase()),
    ...rows.map((row) => row.map((cell) => printable(cell ?? '-'))),
  ];
  const widths = names.map((_, column) => Math.max(...lines.map((line) => widthOf(line[column] ?? ''))));
  const rendered = lines.map((line) => line.map((cell, n) => pad(cell, widths[n] ?? 0)).join('  '));
  return rendered.map((line) => `${line.trimEnd()}\n`).join('');
}

/** The text without what a terminal obeys instead of showing it: escape sequences, line breaks, reversed text. */
export const printable = (text: string): string =>
  text.replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, '\u{FFFD}');

/** In code points: close to the width in a terminal, which no simple rule gives. */
const widthOf = (text: string): number => [...text].length;

const pad = (text: string, width: number): string => text + ' '.repeat(width - widthOf(text));
