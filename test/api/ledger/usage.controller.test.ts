import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { writeLedger } from '../../../db/ledger/write.js';
import type { Problem } from '../../../shared/contracts/contract.js';
import type { OwnUsage, Usage } from '../../../shared/contracts/ledger.js';
import { basic, startApp } from '../../support/app.js';
import { openTestDatabase } from '../../support/database.js';
import { userNamed } from '../../support/identities.js';
import { callRow, ledgerBatch, noon } from '../../support/ledger.js';

const opened = await openTestDatabase();
const app = await startApp({ opened });
const away = await startApp();
afterAll(() => Promise.all([app.close(), away.close()]));

const token = '01a20ac9-0000-7000-8000-00000000000a';
const of = (name: string) => ({ user: userNamed(name).id, name });

beforeAll(async () => {
  const own = of('Rita');
  const calls = [
    callRow({ cost: 2_000_000_000, origin: own }),
    callRow({ call: 2, cost: 1_000_000_000, origin: { ...own, token }, model: '=x', answeredModel: null }),
    callRow({ call: 3, cost: 7, origin: of('user') }),
    callRow({ call: 4, cost: 5, origin: own, endedAt: noon - 86_400_000 }),
  ];
  await writeLedger(opened.database, ledgerBatch({ calls }));
});

const get = <Body>(query: string, by = app) => by.operate<Body>({ path: `/admin/usage${query}` });
const december = 'from=2026-12-01&to=2026-12-31';

describe('GET /admin/usage', () => {
  it('gives sums by day unless it is asked for others, of thirty days to the last', async () => {
    const { body } = await get<Usage>('?to=2026-12-01');
    expect(body).toMatchObject({
      from: '2026-11-02',
      to: '2026-12-01',
      since: '2026-11-30',
      total: { calls: 4 },
    });
    expect(body.rows.map(({ day, calls }) => [day, calls])).toEqual([
      ['2026-11-30', 1],
      ['2026-12-01', 3],
    ]);
    const { rows } = (await get<Usage>(`?${december}&by=user,model&user=Rita`)).body;
    expect(rows.map(({ userId, model }) => [userId, model])).toEqual([]);
    const users = (await get<Usage>(`?${december}&by=user,model&user=${userNamed('Rita').id}`)).body.rows;
    expect(users.map(({ user, model, cost }) => [user, model, cost])).toEqual([
      ['Rita', 'gpt-1', 2],
      ['Rita', '=x', 1],
    ]);
  });

  it('gives CSV, with in and out apart', async () => {
    const { headers, text } = await get(`?${december}&by=model&format=csv&token=${token}`);
    expect(headers.get('content-disposition')).toBe('attachment; filename=quillgate.csv');
    expect(text).toBe(
      "model,calls,failed,estimated,unpriced,lost,input,cached,written,writtenFor1h,output,thinking,cost\r\n'=x,1,0,0,0,0,100,0,0,0,10,0,1\r\n",
    );
  });

  it.each([
    ['?from=2026-12-02&to=2026-12-01', 'to'],
    ['?to=2026-13-01', 'to'],
    ['?by=colour', 'by'],
    ['?by=day,user,model', 'by'],
    ['?by=session&from=2026-10-01&to=2026-12-01', 'from'],
    ['?from=2025-10-01&to=2026-12-01', 'from'],
    ['?from=0000-01-01&to=2000-01-02', 'from'],
    ['?provider=x', 'provider'],
  ])('refuses %s', async (query, pointer) => {
    const { status, body } = await get<Problem>(query);
    expect([status, body.errors?.map((error) => error.pointer)]).toEqual([400, [pointer]]);
  });
});

describe('GET /usage', () => {
  const own = async (Authorization: string) =>
    (await app.ask<OwnUsage>({ path: `/usage?${december}`, headers: { Authorization } })).body;

  it('shows name and secret all of their user, by day and model', async () => {
    expect(await own(basic('user'))).toMatchObject({
      ...{ from: '2026-12-01', to: '2026-12-31', of: 'user', total: { calls: 1 } },
      rows: [{ day: '2026-12-01', model: 'gpt-1', cost: 7e-9 }],
    });
    expect(await own('Bearer reader')).toMatchObject({ of: 'user', total: { calls: 2, cost: 3 } });
  });

  it('shows an access token what was spent with it', async () => {
    expect(await own('Bearer counted')).toMatchObject({ of: 'token', total: { calls: 1, cost: 1 } });
  });
});

it('the database is away -> 503', async () => {
  expect((await get('', away)).status).toBe(503);
  const headers = { Authorization: basic('user') };
  expect((await away.ask({ path: '/usage', headers })).status).toBe(503);
});
