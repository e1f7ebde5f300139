import type { ComponentChildren } from 'preact';
import { ErrorNotice } from './notice.tsx';
import type { PagedList } from './paged-list.ts';
import { Table, type TableProps } from './table.tsx';

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
