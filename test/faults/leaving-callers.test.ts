import { randomUUID } from 'node:crypto';
import { expect } from 'vitest';
import { readMetrics } from '../support/metrics.js';
import { profiles } from '../support/profiles.js';
import { type AccessCall, accesses, adminVariables, askWith } from './support/access.js';
import { codeOf } from './support/balance.js';
import type { Books } from './support/books.js';
import { bothStores, catalogue, type Rules } from './support/catalogue.js';
import { eventually, expectCodes, timed } from './support/expectations.js';
import { type Asked, providerOf } from './support/requests.js';
import { deltas, openUnread, readRest, replyBytes, slowKey } from './support/slow-reader.js';

/** A request whose caller leaves; `begun` resolves at the first delta of a stream. */
type Leaving = Pick<Asked, 'arrived' | 'leave'> & { begun?: Promise<void> };

const each = <T>(count: number, make: (n: number) => T): T[] =>
  Array.from({ length: count }, (_, n) => make(n));
/** The providers that have more than a slot. */
const roomy = (n: number) => (['anthropic', 'bedrock', 'vertexai'] as const)[n % 3] ?? 'anthropic';
/** Without what a case is about, calls end after two minutes. */
const boundMs = 10_000;

/** Each of the two workers has one slot of OpenAI. */
const slots = 2;

catalogue({ variables: { ...profiles.narrow, ...adminVariables }, workers: slots }, (add) => {
  const leavings: [given: string, rules: Rules, ask: (books: Books, n: number) => Leaving][] = [
    [
      'A2 20 callers leave before their answers begin',
      {},
      (books, n) => books.ask({ provider: roomy(n), model: 'sim-hang' }),
    ],
    [
      'A2 20 callers leave in the middle of the body',
      { stores: bothStores },
      (books, n) => books.ask({ provider: roomy(n), model: 'sim-hang-body' }),
    ],
    // The deltas go over the same relay as the cancels.
    [
      'T6 20 callers leave in the middle of their streams',
      {},
      (books, n) => books.stream({ provider: roomy(n), model: 'sim-gate-20' }),
    ],
  ];
  for (const [given, rules, ask] of leavings)
    add(`${given} → their calls are cut`, rules, async (books) => {
      const asked = each(20, (n) => ask(books, n));
      await Promise.all(asked.map(({ begun }) => begun));
      const calls = await Promise.all(asked.map((one) => one.arrived()));
      for (const one of asked) one.leave();
      expect(await timed(Promise.all(calls.map(({ closed }) => closed)))).toBeLessThan(boundMs);
      expect(calls.filter(({ clientClosedFirst }) => !clientClosedFirst)).toEqual([]);
      expect(books.logs()).not.toMatch(/"level":[456]0/);
    });

  add('A2 20 callers leave while their jobs are queued → none of them is called', {}, async (books) => {
    const { simulator } = books.deployment;
    const running = each(slots, () => books.ask({ model: 'sim-hang' }));
    const calls = await Promise.all(running.map((one) => one.arrived()));
    const before = simulator.calls.lastId;
    const queued = each(20, () => books.ask());
    await eventually(async () => expect(await books.jobs.unfinished()).toBe(20 + slots));
    for (const one of queued) one.leave();
    await eventually(async () => expect(await books.jobs.unfinished()).toBe(slots));
    for (const one of running) one.leave();
    await Promise.all(calls.map(({ closed }) => closed));
    const last = books.ask();
    expect(codeOf(await last.reply)).toBe('ok');
    expect(simulator.calls.list({ since: before }).map(({ model }) => model)).toEqual([last.model]);
  });

  add(
    'A2 100 callers leave at once, some before their jobs are added → no job and no call is left, and nothing counts them',
    {},
    async (books) => {
      const asked = each(100, (n) => books.ask({ model: 'sim-hang', provider: providerOf(n) }));
      await eventually(async () => expect(await books.jobs.unfinished()).toBeGreaterThan(20));
      for (const one of asked) one.leave();
      const { api, workers, simulator } = books.deployment;
      await eventually(async () => {
        expect([await books.jobs.unfinished(), simulator.calls.inFlight]).toEqual([0, 0]);
        expect(await sumOf(api, 'quillgate_chat_requests_in_flight')).toBe(0);
        for (const worker of workers) expect(await sumOf(worker, 'quillgate_pool_in_flight')).toBe(0);
      });
      expectCodes(await Promise.all(each(8, (n) => books.chat({ provider: providerOf(n) }))), ['ok']);
    },
  );

  for (const [given, kind, goOn] of [
    ['a user is removed', 'user', false],
    ['a token is revoked', 'token', true],
    ['a session is signed out', 'session', true],
  ] as const)
    add(
      `F4 ${given}, with a stream open and 20 chats queued → 401 for all that is attached, and stored chats ${goOn ? 'go on' : 'end without another call'}`,
      {},
      async (books) => {
        const { url, simulator, startApi } = books.deployment;
        const access = await accesses[kind](books.deployment);
        const other = await startApi();
        const ask = (model: string, call: Partial<AccessCall>) =>
          books.send((marked) => {
            return askWith(access, { url: other.url, provider: 'openai', ...call, model: marked });
          }, model);
        const named = (count: number, behaviour: string, which: string) =>
          each(count, (n) => `${behaviour}@F4-${kind}-${which}-${n}`);
        const store = async (models: readonly string[]) =>
          expectCodes(await Promise.all(models.map((model) => ask(model, { isStored: true }))), ['202']);
        // They run for as long as their workers do not learn of the end.
        const holding = named(slots, 'sim-gate-0', 'holding');
        await store(holding);
        const calls = await Promise.all(
          holding.map((held) => simulator.waitForCall(({ model }) => model === held)),
        );
        const begun = Promise.withResolvers<void>();
        const stream = ask('sim-gate-20', {
          url,
          provider: 'anthropic',
          isStream: true,
          onBegun: begun.resolve,
        });
        await begun.promise;
        const before = simulator.calls.lastId;
        const waiting = named(10, 'sim-echo', 'attached').map((model) => ask(model, {}));
        const stored = named(10, 'sim-echo', 'stored');
        await store(stored);
        await eventually(async () => expect(await books.jobs.unfinished()).toBe(slots + 1 + 20));
        await access.end();
        const ended = Promise.all([...waiting, stream]);
        expect(await timed(ended)).toBeLessThan(boundMs);
        expectCodes(await ended, ['unauthorized']);
        for (const { headers } of await Promise.all(waiting))
          expect(headers.get('www-authenticate')).toMatch(/realm/);
        await eventually(async () =>
          expect(await books.jobs.unfinished()).toBe(goOn ? slots + stored.length : 0),
        );
        for (const model of holding) simulator.open(model);
        await eventually(async () => expect(await books.jobs.unfinished()).toBe(0));
        expect(calls.filter(({ clientClosedFirst }) => clientClosedFirst === goOn)).toEqual([]);
        const called = simulator.calls.list({ since: before }).map(({ model = '' }) => model);
        expect(called.toSorted()).toEqual(goOn ? stored.toSorted() : []);
      },
    );

  const open = { ordinary: 50, stored: 4 };
  add(
    `F3 an API killed with ${open.ordinary} streams that are not stored, and ${open.stored} that are → the calls of those end, and these go on`,
    { unanswered: open.ordinary + open.stored },
    async (books) => {
      const { child, url } = await books.deployment.startApi();
      const stream = (n: number, headers = {}) =>
        books.stream({ url, provider: roomy(n), model: 'sim-gate-20', headers });
      const ordinary = each(open.ordinary, (n) => stream(n));
      const stored = each(open.stored, (n) => stream(n, { 'Idempotency-Key': randomUUID() }));
      const both = [...ordinary, ...stored];
      for (const { end } of both) end.catch(() => undefined);
      await Promise.all(both.map(({ begun }) => begun));
      const calls = await Promise.all(ordinary.map((one) => one.arrived()));
      const storedCalls = await Promise.all(stored.map((one) => one.arrived()));
      await books.kill(child);
      // A process counts as gone after fifteen seconds; calls end after two minutes in any case.
      expect(await timed(Promise.all(calls.map(({ closed }) => closed)))).toBeLessThan(60_000);
      expect(storedCalls.map(({ ended }) => ended)).toEqual(stored.map(() => undefined));
      for (const one of stored) one.open();
      await Promise.all(storedCalls.map(({ closed }) => closed));
      expect(storedCalls.filter(({ clientClosedFirst }) => clientClosedFirst)).toEqual([]);
    },
  );

  add(
    'T8 readers of a stream of 11 MB who read little or nothing, and readers of others → those are sent all or cut, and these are not held up',
    {},
    async (books) => {
      const { api, url } = books.deployment;
      const holding = each(slots, () => books.ask({ model: 'sim-gate-0' }));
      await Promise.all(holding.map((one) => one.arrived()));
      const call = { model: `sim-deltas-wide-${deltas.count}-${deltas.length}@T8`, headers: slowKey };
      const writing = books.stream(call);
      const joining = each(6, () => openUnread(url, call));
      await eventually(async () => expect(await books.jobs.unfinished()).toBe(slots + 1));
      for (const one of holding) one.open();
      const going = new AbortController();
      const joined = await Promise.all(joining);
      const slow = joined.slice(0, 3).map((response) => readRest(response, going.signal));
      expect(codeOf(await writing.end)).toBe('ok');
      const others = each(8, (n) => books.stream({ provider: roomy(n), model: 'sim-stream-100-0' }).end);
      expectCodes(await Promise.all(others), ['ok']);
      going.abort();
      for (const { bytes, text } of await Promise.all(slow)) {
        expect(bytes).toBeGreaterThan(replyBytes);
        expect(text).toMatch(/"usage":\{[^}]*\}\}\n\n$/);
      }
      await eventually(async () => expect(await sumOf(api, 'quillgate_streams_open')).toBe(0));
      for (const { bytes, text } of await Promise.all(
        joined.slice(3).map((response) => readRest(response)),
      )) {
        expect(bytes).toBeLessThan(replyBytes);
        expect(text).not.toContain('event: done');
      }
    },
  );
});

/** A metric of a program, over all its labels. */
async function sumOf({ port }: { port: number }, name: string): Promise<number> {
  const scraped = readMetrics(await (await fetch(`http://127.0.0.1:${port}/metrics`)).text());
  return [...scraped].reduce((sum, [metric, value]) => sum + (metric.startsWith(`${name}{`) ? value : 0), 0);
}
