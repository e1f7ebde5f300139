import { expect } from 'vitest';
import type { Post } from '../../shared/contract.js';
import { fault } from './support/fault.js';

fault({ id: 'B4', injected: 'two writes with the same If-Match at once, twenty times' }, async (books) => {
  const { blog } = await books.start({ workers: 0 });
  for (let round = 0; round < 20; round += 1) {
    const created = await blog('/blogs', { json: { content: 'first' } });
    const { id } = (await created.json()) as Post;
    const headers = { 'If-Match': created.headers.get('etag') ?? '' };
    const put = (content: string) => blog(`/blogs/${id}`, { method: 'PUT', headers, json: { content } });
    const answers = await Promise.all([put('one'), put('other')]);
    expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 412]);
    const [winner] = answers.filter(({ ok }) => ok);
    expect(await (await blog(`/blogs/${id}`)).json()).toEqual(await winner?.json());
  }
  return 'one 200 and one 412 each time, and the winner is what is stored';
});
