import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { writeLedger } from '../../../db/ledger/write.js';
import type { Problem } from '../../../shared/contracts/contract.js';
import type { RequestDetails, RequestPage } from '../../../shared/contracts/ledger.js';
import { startApp } from '../../support/app.js';
import { openTestDatabase } from '../../support/database.js';
import { callRow, ledgerBatch, noon, requestEnd, requestRow } from '../../support/ledger.js';

const idOf = (n: number) => `6f9d0c1e-4b7a-4f3e-9a51-2c8d7e6b5a0${n}`;
const job = {
  id: idOf(8),
  user: 'ann',
  provider: 'openai',
  model: null,
  addedAt: '2026-12-01T00:00:00.000Z',
} as const;
const opened = await openTestDatabase();
const app = await startApp({
  opened,
  findUnfinished: async (id) => (id === job.id ? { state: 'waiting', job } : undefined),
});
const away = await startApp();
afterAll(() => Promise.all([app.close(), away.close()]));

const get = <Body>(path: string, by = app) => by.operate<Body>({ path: `/admin/requests${path}` });
const ids = async (query: string) => (await get<RequestPage>(query)).body.data.map(({ id }) => id);

beforeAll(async () => {
  const requests = [1, 2, 3].map((n) => requestRow({ chat: idOf(n), end: requestEnd({ at: noon + n }) }));
  const formula = { name: '=1+1', session: '-a', model: '@x, "y"', user: 'u' };
  const evil = requestRow({
    chat: idOf(4),
    end: requestEnd({ at: noon + 4, code: 'timeout', error: { status: 503 } }),
    origin: formula,
  });
  const joined = [
    requestRow({ chat: idOf(7), joins: idOf(8) }),
    requestRow({ chat: idOf(6), joins: idOf(1) }),
  ];
  await writeLedger(
    opened.database,
    ledgerBatch({ requests: [...requests, evil, ...joined], calls: [callRow({ chat: idOf(1) })] }),
  );
});

describe('GET /admin/requests', () => {
  it('gives the requests, by what they are asked for and page by page', async () => {
    expect(await ids('?session=-a')).toEqual([idOf(4)]);
    expect(await ids('?result=failed')).toEqual([idOf(4)]);
    expect(await ids(`?id=chatcmpl-${idOf(2)}`)).toEqual([idOf(2)]);
    expect(await ids('?from=2026-12-01T12:00:00.003Z&to=2026-12-01T13:00:00.004%2B01:00')).toEqual([idOf(3)]);
    const { body } = await get<RequestPage>('?limit=2');
    expect(body.data.map(({ id }) => id)).toEqual([idOf(4), idOf(3)]);
    expect(await ids(`?limit=2&before=${body.next}`)).toEqual([idOf(2), idOf(1)]);
  });

  it('gives CSV, whose texts are no formulas, and the address of the page behind', async () => {
    const { headers, text } = await get('?format=csv&limit=1&result=timeout');
    expect(headers.get('content-type')).toBe('text/csv; charset=utf-8');
    expect(headers.get('link')).toBeNull();
    const [names, row] = text.split('\r\n');
    expect(names).toMatch(/^id,user,userId,token,.*,errorStatus,errorType,errorPlace,input,cached,/);
    expect(row).toContain(`${idOf(4)},'=1+1,u,,,chat,false,'-a,openai,"'@x, ""y""",openai,`);
    expect(row).toContain(',503,,,0,0,');
    const { headers: first } = await get('?format=csv&limit=3');
    const [, query = ''] = /^<(\?.+)>; rel="next"$/.exec(first.get('link') ?? '') ?? [];
    expect((await get(query)).text.split('\r\n')[1]).toMatch(new RegExp(`^${idOf(1)},`));
  });

  it.each([
    ['?provider=nobody', 'provider'],
    ['?result=200', 'result'],
    ['?user=', 'user'],
    ['?limit=201', 'limit'],
    ['?from=2026-12-01', 'from'],
    ['?before=x', 'before'],
    ['?format=xml', 'format'],
  ])('refuses %s', async (query, pointer) => {
    const { status, body } = await get<Problem>(query);
    expect([status, body.errors?.map((error) => error.pointer)]).toEqual([400, [pointer]]);
  });
});

describe('GET /admin/requests/{id}', () => {
  it('gives a request by either of its ids, with its calls', async () => {
    for (const id of [idOf(1), `chatcmpl-${idOf(1).toUpperCase()}`])
      expect((await get<RequestDetails>(`/${id}`)).body).toMatchObject({
        ...{ state: 'ended', askedFor: null, request: { id: idOf(1), cost: 1e-6 }, job: null },
        ...{ attempts: [{ code: 'ok' }], calls: [{ call: 1, known: 'told' }] },
      });
    expect((await get(`/${idOf(6)}`)).body).toMatchObject({ askedFor: idOf(6), request: { id: idOf(1) } });
  });

  it('says of one that has not ended whose it is, also to who joined it', async () => {
    const waiting = { state: 'waiting', request: null, attempts: [], calls: [], job };
    expect((await get(`/${idOf(8)}`)).body).toEqual({ ...waiting, askedFor: null });
    expect((await get(`/${idOf(7)}`)).body).toEqual({ ...waiting, askedFor: idOf(7) });
  });

  it.each([idOf(9), 'chatcmpl-', 'meta'])(
    'has none of the id %s -> 404, which requests leave no row',
    async (id) => {
      const { status, body } = await get<Problem>(`/${id}`);
      expect([status, body.detail]).toEqual([404, expect.stringContaining('leaves no row')]);
    },
  );
});

it('the database is away -> 503', async () => {
  for (const path of ['', `/${idOf(1)}`]) expect((await get(path, away)).status).toBe(503);
});
