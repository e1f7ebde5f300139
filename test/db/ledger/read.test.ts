import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createTokenStore } from '../../../db/access/tokens.js';
import { createUserStore, firstUserOf } from '../../../db/access/users.js';
import { sql } from '../../../db/database/drizzle.js';
import {
  findRequest,
  listRequests,
  type RequestFilter,
  readCost,
  readEnds,
} from '../../../db/ledger/read.js';
import type { CallRow, RequestRow } from '../../../db/ledger/rows.js';
import { writeLedger } from '../../../db/ledger/write.js';
import { openTestDatabase } from '../../support/database.js';
import { annsId, callRow, ledgerBatch, lostRun, noon, requestEnd, requestRow } from '../../support/ledger.js';

const { database, stop } = await openTestDatabase();
afterAll(stop);
const empty = () => database.run((db) => db.execute(sql`truncate requests, calls, usage_days`));

const write = (requests: RequestRow[], calls: CallRow[] = []) =>
  writeLedger(database, ledgerBatch({ requests, calls }));
const list = (filter: Partial<RequestFilter> = {}) => listRequests(database, { limit: 10, ...filter });
const ids = async (filter: Partial<RequestFilter>) => (await list(filter)).data.map(({ id }) => id);
const day = 86_400_000;

describe('listRequests', () => {
  beforeAll(empty);

  it('has what is known of a request, its calls summed, and null for what is not', async () => {
    const token = await createTokenStore(database).create({
      ...{
        owner: 'ann',
        name: 'build',
        scopes: ['chat'],
        expiresAt: undefined,
        secretHash: Buffer.from('x'),
      },
    });
    const error = { status: 529, type: 'overloaded_error' };
    const end = requestEnd({ model: 'gpt-1', waitedMs: 7, calledMs: 900, error });
    const calls = [
      callRow(),
      callRow({ call: 2, known: 'estimated', tokens: { cached: 60, thinking: 4 }, cost: 2_000_000_000 }),
      lostRun({ run: 2 }),
    ];
    await write([requestRow({ end, origin: { token: token.id, stream: true, session: 's' } })], calls);
    const { data, next, since } = await list();
    expect(data).toEqual([
      {
        ...{
          id: 'a',
          user: 'ann',
          userId: expect.any(String),
          token: token.id,
          tokenName: 'build',
          api: 'chat',
        },
        ...{ console: false, session: 's', provider: 'openai', model: null, answeredProvider: 'openai' },
        ...{ answeredModel: 'gpt-1', streamed: true, stored: false, result: 'ok', error },
        ...{ addedAt: '2026-12-01T11:59:55.000Z', endedAt: '2026-12-01T12:00:00.000Z', totalMs: 5000 },
        ...{
          waitedMs: 7,
          calledMs: 900,
          firstTokenMs: null,
          calls: 2,
          estimated: 1,
          lost: 1,
          cost: 2.000001,
        },
        tokens: { input: 200, cached: 60, written: 0, writtenFor1h: 0, output: 20, thinking: 4 },
      },
    ]);
    expect([next, since]).toEqual([null, '2026-12-01T12:00:00.000Z']);
  });

  it('knows no cost where a call has none, or there is but a lost run', async () => {
    const requests = ['b', 'c', 'd'].map((chat) => requestRow({ chat, end: requestEnd() }));
    await write(requests, [
      callRow({ chat: 'b' }),
      callRow({ chat: 'b', call: 2, cost: null }),
      lostRun({ chat: 'c' }),
    ]);
    expect((await list()).data.map(({ id, cost }) => [id, cost])).toEqual([
      ['d', 0],
      ['c', null],
      ['b', null],
      ['a', 2.000001],
    ]);
  });
});

describe('a filter', () => {
  const other = '0d6f0a9e-5f0e-4bb4-8d1c-3c1a45f2a002';

  beforeAll(async () => {
    await empty();
    const calls = [callRow({ chat: 'plain', requestId: 'req_1' })];
    await write(
      [
        requestRow({ chat: 'plain', end: requestEnd() }),
        requestRow({ chat: 'failed', end: requestEnd({ at: noon + 1, code: 'provider_error' }) }),
        requestRow({ chat: 'left', left: { code: 'cancelled', at: noon + 2 } }),
        requestRow({
          ...{ chat: 'passed on', end: requestEnd({ at: noon + 3, provider: 'bedrock', model: 'nova' }) },
          origin: {
            user: firstUserOf('Ben').id,
            name: 'Ben',
            model: 'gpt',
            token: other,
            session: 's',
            api: 'completions',
          },
        }),
        // A name that is the id of another.
        requestRow({
          chat: 'evil',
          end: requestEnd({ at: noon + 4 }),
          origin: { user: other, name: annsId },
        }),
        requestRow({ chat: 'runs' }),
      ],
      calls,
    );
  });

  it.each<[filter: Partial<RequestFilter>, found: string[]]>([
    [{}, ['evil', 'passed on', 'left', 'failed', 'plain']],
    [{ id: 'chatcmpl-plain' }, ['plain']],
    [{ id: 'runs' }, []],
    [{ providerRequestId: 'req_1' }, ['plain']],
    [{ user: 'Ben' }, ['passed on']],
    [{ user: annsId }, ['left', 'failed', 'plain']],
    [{ user: annsId, result: 'failed' }, ['failed']],
    [{ user: 'nobody' }, []],
    [{ token: other }, ['passed on']],
    [{ provider: 'bedrock' }, ['passed on']],
    [{ provider: 'openai', session: 's' }, ['passed on']],
    [{ model: 'nova' }, ['passed on']],
    [{ model: 'gpt' }, ['passed on']],
    [{ result: 'failed' }, ['failed']],
    [{ result: 'provider_error' }, ['failed']],
    [{ result: 'cancelled' }, ['left']],
    [{ api: 'completions' }, ['passed on']],
    [{ from: new Date(noon + 1), to: new Date(noon + 3) }, ['left', 'failed']],
  ])('%j -> %j', async (filter, found) => {
    expect(await ids({ to: new Date(noon + day), ...filter })).toEqual(found);
  });

  it('finds a user by a name that was removed, or is of the database', async () => {
    const store = createUserStore(database);
    const user = await store.add({ name: 'Zoë', secretHash: Buffer.from('x') });
    await write([
      requestRow({
        chat: 'of Zoë',
        end: requestEnd({ at: noon + 9 }),
        origin: { user: user ?? '', name: 'Zoë' },
      }),
    ]);
    expect(await ids({ user: 'Zoë' })).toEqual(['of Zoë']);
    await store.remove('Zoë');
    expect(await ids({ user: 'Zoë' })).toEqual(['of Zoë']);
  });
});

describe('the pages', () => {
  beforeEach(empty);
  /** All pages, each as its ids. */
  const pages = async (filter: Partial<RequestFilter>) => {
    const found: string[][] = [];
    let before: string | undefined;
    do {
      const page = await list({ ...filter, before });
      found.push(page.data.map(({ id }) => id));
      before = page.next ?? undefined;
    } while (before !== undefined);
    return found;
  };

  it('are whole, also where many end at once', async () => {
    await write(['a', 'b', 'c.d', 'e', 'f'].map((chat) => requestRow({ chat, end: requestEnd() })));
    expect(await pages({ limit: 2 })).toEqual([['f', 'e'], ['c.d', 'b'], ['a']]);
    expect(await pages({ limit: 2, user: annsId })).toEqual([['f', 'e'], ['c.d', 'b'], ['a']]);
    expect(await pages({ limit: 5 })).toEqual([['f', 'e', 'c.d', 'b', 'a']]);
  });

  it('of a filter without an index look through seven days, and go on before them until the first', async () => {
    const ends = [0, 1, 8, 30];
    const requests = ends.map((days) =>
      requestRow({ chat: `${days}`, end: requestEnd({ at: noon - days * day }) }),
    );
    await write([
      ...requests,
      requestRow({ chat: 'x', end: requestEnd({ at: noon - 31 * day }), origin: { api: 'else' } }),
    ]);
    const to = new Date(noon + 1);
    expect(await pages({ api: 'chat', to })).toEqual([['0', '1'], ['8'], [], [], ['30']]);
    expect(await pages({ api: 'chat', to, from: new Date(noon - 9 * day) })).toEqual([['0', '1'], ['8']]);
    expect(await pages({ result: 'ok', session: 'none', to })).toEqual([[]]);
    expect(await pages({ result: 'timeout', to, from: new Date(noon - 9 * day) })).toEqual([[], []]);
    expect(await pages({ to })).toEqual([['0', '1', '8', '30', 'x']]);
  });

  it('are one without a next while the ledger is empty', async () => {
    expect(await list({ api: 'chat' })).toEqual({ data: [], next: null, since: null });
  });
});

describe('findRequest', () => {
  beforeEach(empty);

  it('gives a request with its attempts and calls in their order', async () => {
    const attempts = [
      { provider: 'openai', model: 'gpt', code: 'provider_error', error: { status: 500 } },
      { provider: 'bedrock', code: 'ok' },
    ];
    const end = requestEnd({ attempt: 2, provider: 'bedrock', model: 'nova', attempts });
    const calls = [
      callRow({ attempt: 2 }),
      callRow({ call: 2, requestId: 'r', cost: 5 }),
      callRow(),
      lostRun({ run: 2 }),
    ];
    await write(
      [requestRow({ end }), requestRow({ chat: 'b', end: requestEnd() })],
      [...calls, callRow({ chat: 'b' })],
    );
    const { chat, ended } = await findRequest(database, 'chatcmpl-a');
    expect([chat, ended?.state, ended?.askedFor, ended?.request?.calls]).toEqual(['a', 'ended', null, 3]);
    expect(ended?.attempts).toEqual([
      { provider: 'openai', model: 'gpt', code: 'provider_error', error: { status: 500 } },
      { provider: 'bedrock', model: null, code: 'ok', error: null },
    ]);
    expect(ended?.calls.map(({ attempt, run, call }) => [attempt, run, call])).toEqual([
      ...[
        [1, 1, 1],
        [1, 1, 2],
        [1, 2, 0],
      ],
      [2, 1, 1],
    ]);
    expect(ended?.calls[1]).toEqual({
      ...{
        attempt: 1,
        run: 1,
        call: 2,
        kind: 'first',
        provider: 'openai',
        model: 'gpt',
        answeredModel: 'gpt-1',
      },
      ...{
        startedAt: '2026-12-01T11:59:59.000Z',
        endedAt: '2026-12-01T12:00:00.000Z',
        known: 'told',
        code: 'ok',
      },
      ...{
        status: null,
        type: null,
        requests: 1,
        tier: null,
        requestId: 'r',
        cost: 5e-9,
        priceDated: '2026-11-01',
      },
      tokens: { input: 100, cached: 0, written: 0, writtenFor1h: 0, output: 10, thinking: 0 },
    });
  });

  it('gives the only attempt of one that was queued, and none of one that was refused', async () => {
    const end = requestEnd({ code: 'provider_rejected', model: 'gpt', error: { type: 'x' } });
    await write([requestRow({ end }), requestRow({ chat: 'b', left: { code: 'overloaded', at: noon } })]);
    const attempt = { provider: 'openai', model: 'gpt', code: 'provider_rejected', error: { type: 'x' } };
    expect((await findRequest(database, 'a')).ended?.attempts).toEqual([attempt]);
    expect((await findRequest(database, 'b')).ended).toMatchObject({
      attempts: [],
      request: { answeredProvider: null },
    });
  });

  it('follows a request to the chat whose reply it was given, once', async () => {
    await write([
      requestRow({ end: requestEnd() }),
      requestRow({ chat: 'b', joins: 'a' }),
      requestRow({ chat: 'c', joins: 'b' }),
    ]);
    expect(await findRequest(database, 'b')).toMatchObject({
      chat: 'a',
      ended: { askedFor: 'b', request: { id: 'a' } },
    });
    expect(await findRequest(database, 'c')).toEqual({ chat: 'b', ended: undefined });
  });

  it('says of what has not ended which chat it is', async () => {
    await write([requestRow(), requestRow({ chat: 'b', joins: 'c' })]);
    expect(await findRequest(database, 'a')).toEqual({ chat: 'a', ended: undefined });
    expect(await findRequest(database, 'b')).toEqual({ chat: 'c', ended: undefined });
    expect(await findRequest(database, 'chatcmpl-d')).toEqual({ chat: 'd', ended: undefined });
  });
});

describe('readEnds', () => {
  it('counts ends and failures by five seconds and provider, with percentiles of their times', async () => {
    await empty();
    const ends = [
      ...Array.from({ length: 20 }, (_, n) => requestEnd({ at: noon + n, waitedMs: n + 1, calledMs: 100 })),
      requestEnd({ at: noon + 5000, code: 'timeout' }),
      requestEnd({ at: noon - 1 }),
    ];
    const origin = { provider: 'bedrock' } as const;
    await write([
      ...ends.map((end, n) => requestRow({ chat: `${n}`, end })),
      requestRow({ chat: 'x', end: requestEnd({ at: noon + 4999 }), origin }),
    ]);
    const [first, second] = [
      { slot: noon, failed: 0 },
      { slot: noon + 5000, failed: 1 },
    ];
    const openai = [
      {
        provider: 'openai',
        ...first,
        ended: 20,
        waitedMs: { p50: 10, p95: 19 },
        calledMs: { p50: 100, p95: 100 },
      },
      { provider: 'openai', ...second, ended: 1, waitedMs: null, calledMs: null },
    ];
    const bedrock = { provider: 'bedrock', ...first, ended: 1, waitedMs: null, calledMs: null };
    expect(await readEnds(database, { sinceMs: noon })).toEqual([bedrock, ...openai]);
    expect(await readEnds(database, { sinceMs: noon, provider: 'openai' })).toEqual(openai);
  });
});

describe('the cost of a chat', () => {
  it('is the sum of its calls once it has ended, and unknown where one of them, or a lost run, has none', async () => {
    await empty();
    await write([], [callRow({ chat: 'a' }), callRow({ chat: 'a', call: 2 })]);
    await write([], [callRow({ chat: 'b' }), callRow({ chat: 'b', call: 2, cost: null })]);
    await write([], [callRow({ chat: 'c' }), lostRun({ chat: 'c', run: 2 })]);
    const read = () => Promise.all(['a', 'b', 'c', 'none'].map((chat) => readCost(database, chat)));
    // Another attempt may still make calls.
    expect(await read()).toEqual([undefined, undefined, undefined, undefined]);
    await write(['a', 'b', 'c'].map((chat) => requestRow({ chat, end: requestEnd() })));
    expect(await read()).toEqual([0.000002, undefined, undefined, undefined]);
  });
});
