import type { ComponentChildren } from 'preact';
import { useLayoutEffect, useRef } from 'preact/hooks';

export interface TableProps {
  label: string;
  /** The title of each column, with its class if it has one. */
  titles: readonly (string | readonly [title: string, className: string])[];
  children: ComponentChildren;
}

/** A table that scrolls by itself. On a phone each row becomes a list of its cells with the titles of their columns. */
export function Table({ label, titles, children }: TableProps) {
  const body = useRef<HTMLTableSectionElement>(null);
  const columns = titles.map((title) => (typeof title === 'string' ? ([title, ''] as const) : title));
  useLayoutEffect(() => {
    for (const row of body.current?.rows ?? [])
      for (const cell of row.cells) cell.dataset.label = columns[cell.cellIndex]?.[0] ?? '';
  });
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: What scrolls has to be within reach of the keyboard.
    <section class="scroll" aria-label={label} tabIndex={0}>
      <table>
        <thead>
          <tr>
            {columns.map(([title, className]) => (
              <th key={title} scope="col" class={className}>
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody ref={body}>{children}</tbody>
      </table>
    </section>
  );
}
