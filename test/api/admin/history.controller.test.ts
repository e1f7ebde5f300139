import { afterAll, describe, expect, it } from 'vitest';
import type { Problem } from '../../../shared/contracts/contract.js';
import type { RecentRequests } from '../../../shared/contracts/history.js';
import { startApp } from '../../support/app.js';
import { recentRequest } from '../../support/history.js';

const app = await startApp();
afterAll(app.close);
app.history.recordEnd(recentRequest({ id: 'a' }), 'id');
app.history.recordEnd(recentRequest({ id: 'b', provider: 'bedrock', user: 'Ben Ö', code: 'timeout' }), 'id');

const get = <Body>(path: string) => app.operate<Body>({ path: `/admin/${path}` });
const ids = async (query: string) =>
  (await get<RecentRequests>(`requests${query}`)).body.requests.map(({ id }) => id).sort();

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
    const body = { processes: 1, isPartial: true, at: expect.stringMatching(/Z$/) };
    expect(await get('requests')).toMatchObject({ status: 200, body });
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
    const { status, body } = await get<Problem>(path);
    expect([status, body.errors?.map((error) => error.pointer)]).toEqual([400, [pointer]]);
  });
});

describe('GET /admin/samples', () => {
  it('says how far apart they are, and has none before the first', async () => {
    const body = { everyMs: 5000, processes: 1, samples: [] };
    expect(await get('samples?provider=openai')).toMatchObject({ status: 200, body });
  });
});
