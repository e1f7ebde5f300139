import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { expect } from 'vitest';
import type { Post } from '../../shared/contract.js';
import { blogToken } from '../support/deployment.js';
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

const oddIds = [
  '42',
  '%00',
  '%E0%A4%A',
  'x'.repeat(10_000),
  '..%2F',
  '__proto__',
  "'%3B%20DROP%20TABLE%20posts%3B--",
];

fault({ id: 'B5', injected: 'ids that are none' }, async (books) => {
  const { url } = await books.start({ workers: 0 });
  const statuses: (number | undefined)[] = [];
  for (const id of [...oddIds, '../'])
    for (const method of ['GET', 'PUT', 'PATCH', 'DELETE'])
      statuses.push(await statusOf(url, method, `/blogs/${id}`));
  // One level up is another address.
  expect(statuses.filter((status) => ![400, 404, 405].includes(status ?? 0))).toEqual([]);
  return `${statuses.length} requests: 404, 400 or 405, never 500`;
});

/** Sends the path as it is: no client would. */
async function statusOf(url: string, method: string, path: string): Promise<number | undefined> {
  const { hostname, port } = new URL(url);
  const headers = { Authorization: `Bearer ${blogToken}`, 'Content-Type': 'application/json' };
  const sent = request({ hostname, port, method, path, headers });
  sent.end(method === 'PUT' || method === 'PATCH' ? '{"content":"x"}' : undefined);
  const [answer] = (await once(sent, 'response')) as [IncomingMessage];
  answer.resume();
  return answer.statusCode;
}

const refusedTexts = ['a\0b', '\ud83d', '\udc00\ud800'];
const keptTexts = [
  '👩‍👩‍👧‍👦 🏴‍☠️',
  'שלום \u202eabc',
  "'; DROP TABLE posts; --",
  '\u2028\u2029\ufeff\ufffd',
  'e\u0301 \u00e9',
  ' \t x\r\n ',
];

fault(
  {
    id: 'B6',
    injected: 'texts with NUL and lone surrogates; with emoji, right to left, and SQL',
  },
  async (books) => {
    const { blog } = await books.start({ workers: 0 });
    for (const content of refusedTexts) {
      for (const json of [{ content }, { content: 'x', title: content }, { content: 'x', tags: [content] }])
        expect((await blog('/blogs', { json })).status).toBe(400);
    }
    for (const content of keptTexts) {
      const created = (await (await blog('/blogs', { json: { content } })).json()) as Post;
      const read = (await (await blog(`/blogs/${created.id}`)).json()) as Post;
      expect(read.content).toBe(content);
    }
    return '400, or kept byte for byte';
  },
);
