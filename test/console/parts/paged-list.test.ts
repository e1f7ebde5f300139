import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { addressOf, PagedList } from '../../../console/parts/paged-table.tsx';

const answers = new Map<string, () => Promise<Response>>();
const page = (data: unknown[], next: string | null) => async () => Response.json({ data, next });
beforeEach(() => {
  answers.clear();
  const fail = () => Promise.reject(new TypeError('no answer'));
  vi.stubGlobal('fetch', (path: string) => (answers.get(path) ?? fail)());
});
afterEach(() => {
  vi.unstubAllGlobals();
});

const openList = () => new PagedList<number>((before) => addressOf('/list', { before }));

describe('PagedList', () => {
  it('reads one page after the other, and begins again', async () => {
    answers.set('/list', page([4, 3], 'a b')).set('/list?before=a+b', page([2], null));
    const list = openList();
    expect(list.rows.value).toBeUndefined();
    await list.load();
    expect([list.rows.value, list.next.value]).toEqual([[4, 3], 'a b']);
    await list.more();
    expect([list.rows.value, list.next.value]).toEqual([[4, 3, 2], null]);
    await list.more();
    await list.load();
    expect([list.rows.value, list.next.value, list.isLoading.value]).toEqual([[4, 3], 'a b', false]);
  });

  it('keeps what it has when the next page cannot be read, and can try again', async () => {
    answers.set('/list', page([1], 'x'));
    const list = openList();
    await list.load();
    await list.more();
    expect([list.rows.value, list.isLoading.value, list.error.value]).toEqual([
      [1],
      false,
      expect.any(Error),
    ]);
    answers.set('/list?before=x', page([0], null));
    await list.more();
    expect([list.rows.value, list.error.value]).toEqual([[1, 0], undefined]);
  });

  it('reads the first page again without a word, and leaves a longer list as it is', async () => {
    answers.set('/list', page([3, 2], 'x')).set('/list?before=x', page([1], null));
    const list = openList();
    await list.load();
    answers.set('/list', page([4, 3], 'y'));
    const refreshing = list.refresh();
    expect(list.isLoading.value).toBe(false);
    await refreshing;
    expect(list.rows.value).toEqual([4, 3]);
    answers.delete('/list');
    await list.refresh();
    expect([list.rows.value, list.error.value]).toEqual([[4, 3], expect.any(Error)]);
    answers.set('/list', page([5, 4], 'x'));
    await list.refresh();
    expect(list.error.value).toBeUndefined();
    await list.more();
    await list.refresh();
    expect(list.rows.value).toEqual([5, 4, 1]);
  });

  it('shows the later of two readings, also when that answers first', async () => {
    const slow = Promise.withResolvers<Response>();
    answers.set('/list', () => slow.promise);
    const list = openList();
    const first = list.load();
    answers.set('/list', page([2], null));
    await list.load();
    slow.resolve(Response.json({ data: [1], next: null }));
    await first;
    expect([list.rows.value, list.isLoading.value]).toEqual([[2], false]);
  });
});
