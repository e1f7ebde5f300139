import { signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useEffect, useLayoutEffect, useMemo, useRef } from 'preact/hooks';
import { call } from '../api.ts';
import { poll } from './answer.ts';
import { ErrorNotice } from './field.tsx';

interface PagedTableProps<T> extends Omit<TableProps, 'children'> {
  list: PagedList<T>;
  /** The `<tr>` of one, with its id as key. */
  row: (one: T) => ComponentChildren;
  empty: string;
  more: string;
}

/** The rows that were read, and below them why the list could not be read, that it is empty, or the way to more. */
export function PagedTable<T extends { id: string }>(props: PagedTableProps<T>) {
  const { list, row, empty, more, ...table } = props;
  const { next, error, isLoading } = list;
  // A list may change between two pages, so the next one may repeat some.
  const rows = [...new Map(list.rows.value?.map((one) => [one.id, one])).values()];
  return (
    <>
      {rows.length > 0 && <Table {...table}>{rows.map(row)}</Table>}
      <ErrorNotice error={error.value} />
      <p class="soft" role="status">
        {isLoading.value ? 'Loading…' : list.rows.value?.length === 0 && empty}
      </p>
      <p class="row">
        {next.value !== null && (
          <button type="button" disabled={isLoading.value} onClick={() => void list.more()}>
            {more}
          </button>
        )}
        {error.value !== undefined && (
          <button type="button" onClick={() => void list.load()}>
            Try again
          </button>
        )}
      </p>
    </>
  );
}

interface Page<T> {
  data: T[];
  next: string | null;
  /** Since when the list counts, where it says so. */
  since?: string | null;
}

/** The address of a page; `from` is the `next` of the one before. */
type AddressOf = (from: string | undefined) => string;

/** A list that is read page by page. */
export class PagedList<T> {
  /** Undefined before the first page was read. */
  readonly rows = signal<readonly T[] | undefined>(undefined);
  readonly next = signal<string | null>(null);
  readonly since = signal<string | null>(null);
  readonly error = signal<unknown>(undefined);
  readonly isLoading = signal(false);
  readonly #addressOf: AddressOf;
  #reading = new AbortController();
  #isFirst = true;

  constructor(addressOf: AddressOf) {
    this.#addressOf = addressOf;
  }

  /** Reads it from the beginning; what is there stays until then. */
  async load(): Promise<void> {
    await this.#read(undefined);
  }

  async more(): Promise<void> {
    if (this.next.value !== null) await this.#read(this.next.value);
  }

  /** Reads the first page again without a word, unless more of the list is shown or being read. */
  async refresh(): Promise<void> {
    if (this.#isFirst && !this.isLoading.value) await this.#read(undefined, false);
  }

  close(): void {
    this.#reading.abort();
  }

  async #read(from: string | undefined, isTold = true): Promise<void> {
    this.#reading.abort();
    this.#reading = new AbortController();
    const { signal } = this.#reading;
    if (isTold) {
      this.isLoading.value = true;
      this.error.value = undefined;
    }
    try {
      const { body } = await call<Page<T>>(this.#addressOf(from), { signal });
      if (signal.aborted) return;
      this.rows.value = from === undefined ? body.data : [...(this.rows.value ?? []), ...body.data];
      this.next.value = body.next;
      this.since.value = body.since ?? null;
      this.error.value = undefined;
      this.#isFirst = from === undefined;
    } catch (error) {
      if (!signal.aborted) this.error.value = error;
    } finally {
      if (!signal.aborted) this.isLoading.value = false;
    }
  }
}

/**
 * A list that is read when it is shown, and another one when one of `inputs` has changed; its first page is read again
 * each `everyMs`, if that is given.
 */
export function usePagedList<T>(addressOf: AddressOf, inputs: readonly unknown[], everyMs = 0): PagedList<T> {
  const list = useMemo(() => new PagedList<T>(addressOf), inputs);
  useEffect(() => {
    const stop = poll(everyMs, async (_signal, reads) => {
      await (reads === 1 ? list.load() : list.refresh());
      return everyMs === 0;
    });
    return () => {
      stop();
      list.close();
    };
  }, [list]);
  return list;
}

/** Shows a view again with what the form of its filter says, when that is submitted. */
export function showFiltered(event: SubmitEvent, view: string): void {
  event.preventDefault();
  const fields = [...new FormData(event.currentTarget as HTMLFormElement)];
  location.hash = addressOf(
    `/${view}`,
    Object.fromEntries(fields.map(([name, value]) => [name, String(value).trim()])),
  );
}

/** The path with those parameters that have a value. */
export function addressOf(path: string, parameters: Readonly<Record<string, string | undefined>>): string {
  const given = Object.entries(parameters).filter((pair): pair is [string, string] => Boolean(pair[1]));
  const query = new URLSearchParams(given).toString();
  return query === '' ? path : `${path}?${query}`;
}

interface TableProps {
  label: string;
  class?: string;
  /** The title of each column, with its class if it has one. */
  titles: readonly (string | readonly [title: string, className: string])[];
  children: ComponentChildren;
}

/** A table that scrolls by itself. On a phone each row becomes a list of its cells with the titles of their columns. */
export function Table({ label, class: name = '', titles, children }: TableProps) {
  const body = useRef<HTMLTableSectionElement>(null);
  const columns = titles.map((title) => (typeof title === 'string' ? ([title, ''] as const) : title));
  useLayoutEffect(() => {
    for (const row of body.current?.rows ?? [])
      for (const cell of row.cells) cell.dataset.label = columns[cell.cellIndex]?.[0] ?? '';
  });
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: What scrolls has to be within reach of the keyboard.
    <section class={`scroll ${name}`} aria-label={label} tabIndex={0}>
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
