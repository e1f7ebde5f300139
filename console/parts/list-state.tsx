import { ErrorNotice } from './notice.tsx';
import type { PagedList } from './paged-list.ts';

/** What is below a list: why it could not be read, that there is nothing, or the way to more. */
export function ListState<T>({ list, empty, more }: { list: PagedList<T>; empty: string; more: string }) {
  const { rows, next, error, isLoading } = list;
  return (
    <>
      <ErrorNotice error={error.value} />
      <p class="soft" role="status">
        {isLoading.value ? 'Loading…' : rows.value?.length === 0 && empty}
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
