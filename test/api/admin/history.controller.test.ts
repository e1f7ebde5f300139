import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Problem } from '../../../shared/contracts/contract.js';
import { type RecentRequests, type Samples } from '../../../shared/contracts/history.js';
import { type ChatApp, startChatApp } from '../../support/chat-app.js';
import { recentRequest } from '../../support/history.js';

let app: ChatApp;
beforeAll(async () => {
  app = await startChatApp();
  app.history.recordEnd(recentRequest({ id: 'a' }), 'id');
  app.history.recordEnd(
    recentRequest({ id: 'b', provider: 'bedrock', user: 'Ben Ö', code: 'timeout' }),
    'id',
  );
});
afterAll(() => app.close());

const get = async (path: string, token = 'operator') => {
  const response = await fetch(`${app.url}/admin/${path}`, { headers: { Authorization: `Bearer ${token}` } });
  return { status: response.status, body: await response.json() };
};
const ids = async (query: string) =>
  ((await get(`requests${query}`)).body as RecentRequests).requests.map(({ id }) => id).sort();

describe('GET /admin/requests', () => {
  it('lists the last chats, by provider, user and code, as many as are wanted', async () => {
    expect(await ids('')).toEqual(['a', 'b']);
    expect(await ids('?provider=bedrock')).toEqual(['b']);
    expect(await ids('?user=Ben+%C3%96&code=timeout')).toEqual(['b']);
    expect(await ids('?code=overloaded')).toEqual([]);
    expect(await ids('?id=b')).toEqual(['b']);
    expect(await ids('?id=c')).toEqual([]);
    expect(await ids('?limit=1')).toHaveLength(1);
  });

  it('says of how many processes it knows, and that the others could not be asked', async () => {
    const { status, body } = await get('requests');
    expect([status, body]).toEqual([
      200,
      expect.objectContaining({ processes: 1, isPartial: true, at: expect.stringMatching(/Z$/) }),
    ]);
  });

  it.each([
    ['requests?provider=nobody', 'provider'],
    ['requests?code=200', 'code'],
    ['requests?user=', 'user'],
    ['requests?limit=1001', 'limit'],
    ['requests?limit=1&limit=2', 'limit'],
    ['samples?provider=', 'provider'],
    ['events?include=all', 'include'],
    ['events?include=requests,', 'include'],
  ])('refuses %s', async (path, pointer) => {
    const { status, body } = await get(path);
    expect([status, (body as Problem).errors?.map((error) => error.pointer)]).toEqual([400, [pointer]]);
  });
});

describe('GET /admin/samples', () => {
  it('says how far apart they are, and has none before the first', async () => {
    const { status, body } = await get('samples?provider=openai');
    expect(status).toBe(200);
    expect(body as Samples).toMatchObject({ everyMs: 5000, processes: 1, samples: [] });
  });
});
