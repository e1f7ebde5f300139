import { expect } from 'vitest';
import type { ChildProgram } from '../../dev/child-program.js';
import { withLag } from '../support/lateness.js';
import { providerOf } from './support/at-providers.js';
import { codeOf } from './support/balance.js';
import type { Books } from './support/books.js';
import { expectCodes, timed } from './support/expectations.js';
import { fault } from './support/fault.js';
import { type AskedStream, numbersUpTo } from './support/streams.js';

const open = 20;

/** Opens streams at all providers. */
const openStreams = (books: Books, model: string, count = open): AskedStream[] =>
  Array.from({ length: count }, (_, n) => books.stream({ provider: providerOf(n), model }));

const storedCall = (model: string, n: number) => ({
  provider: providerOf(n),
  model: `${model}-${n}`,
  headers: { 'Idempotency-Key': `${model}-${n}` },
});

/** Opens streams of stored chats at all providers. */
const openStored = (books: Books, model: string, count: number): AskedStream[] =>
  Array.from({ length: count }, (_, n) => books.stream(storedCall(model, n)));

/** Asks another API process for the rest of stored streams. */
const resume = (books: Books, url: string, asked: readonly AskedStream[]): AskedStream[] =>
  asked.map(({ model, seen }, n) => {
    const { headers, ...call } = storedCall(model.replace(/-\d+$/, ''), n);
    return books.stream({ ...call, url, headers: { ...headers, 'Last-Event-ID': seen.lastEventId ?? '' } });
  });

const allBegun = (asked: readonly AskedStream[]) => Promise.all(asked.map(({ begun }) => begun));

const interruptions: [injected: string, interrupt: (books: Books) => Promise<unknown> | boolean][] = [
  ['kill -9 of one of two workers', (books) => books.kill(books.deployment.workers[0])],
  ['one of two workers frozen for longer than its lock', (books) => signalFirst(books, 'SIGSTOP')],
];
for (const [injected, interrupt] of interruptions)
  fault(
    {
      id: 'T4',
      injected: `${injected}, with ${open} streams open and ten that have not begun`,
      callsPerRequest: 2,
    },
    async (books) => {
      await books.start({ workers: 2, variables: { CHAT_TIMEOUT_MS: '30000' } });
      const asked = openStreams(books, 'sim-stream-150-20');
      const waiting = openStreams(books, 'sim-latency-4000', 10);
      await allBegun(asked);
      await Promise.all(waiting.map((one) => one.arrived()));
      await interrupt(books);
      const [ends, later] = await Promise.all(
        [asked, waiting].map((some) => Promise.all(some.map(({ end }) => end))),
      ).finally(() => signalFirst(books, 'SIGCONT'));
      expectCodes(ends ?? [], ['ok', 'internal']);
      const broken = (ends ?? []).filter((end) => codeOf(end) === 'internal');
      for (const { body, begun } of broken) expect([begun, body.retryable]).toEqual([true, true]);
      expect(broken.length).toBeGreaterThan(0);
      expectCodes([...(later ?? []), await books.stream().end], ['ok']);
      return `${broken.length} × error: internal, retryable, the other ${open - broken.length} done; those that had not begun: done`;
    },
  );

/** Does nothing when the first worker has ended. */
function signalFirst({ deployment }: Books, signal: NodeJS.Signals): boolean {
  try {
    return process.kill(deployment.workers[0]?.pid ?? Number.NaN, signal);
  } catch {
    return false;
  }
}

fault(
  { id: 'T5', injected: `kill -9 of the API with ${open} stored streams open`, unanswered: open },
  async (books) => {
    const { api, startApi, simulator } = await books.start();
    const { url } = await startApi();
    const first = openStored(books, 'sim-stream-200-20@T5', open);
    await allBegun(first);
    await books.kill(api);
    await Promise.allSettled(first.map(({ end }) => end));
    const rest = resume(books, url, first);
    const ends = await Promise.all(rest.map(({ end }) => end));
    expectCodes(ends, ['ok']);
    const whole = numbersUpTo(200 * 4).slice(0, String(ends[0]?.body.response).length);
    ends.forEach(({ body }, n) => {
      expect(body.response).toBe(whole);
      expect(`${first[n]?.seen.text}${rest[n]?.seen.text}`).toBe(whole);
    });
    for (const { model } of first) expect(simulator.calls.list({ model })).toHaveLength(1);
    return `${open} resumed at another API, byte for byte, one call each`;
  },
);

const graceMs = 1000;
const grace = { STREAM_GRACE_MS: String(graceMs), SHUTDOWN_GRACE_MS: '10000' };

fault(
  { id: 'T9', timed: true, injected: 'SIGTERM to a worker with streams that outlast their grace' },
  async (books) => {
    const { workers } = await books.start({ variables: grace });
    const asked = openStreams(books, 'sim-stream-900-20');
    const ordinary = books.ask({ model: 'sim-latency-3000' });
    await Promise.all([allBegun(asked), ordinary.arrived()]);
    const tookMs = await endWithin(asked, workers[0]);
    for (const { end } of asked)
      expect(await end).toMatchObject({
        begun: true,
        body: { code: 'provider_unavailable', retryable: true },
      });
    expect(codeOf(await ordinary.reply)).toBe('ok');
    expect(await workers[0]?.exitCode).toBe(0);
    return `error: provider_unavailable, retryable, after ${tookMs} ms; the ordinary request 200; exit 0`;
  },
);

fault(
  { id: 'T9', timed: true, injected: 'SIGTERM to an API with stored streams that outlast their grace' },
  async (books) => {
    const { api, startApi } = await books.start({ variables: grace });
    const { url } = await startApi();
    const asked = openStored(books, 'sim-stream-250-20@T9', 8);
    const ordinary = books.ask({ model: 'sim-latency-3000' });
    await Promise.all([allBegun(asked), ordinary.arrived()]);
    const tookMs = await endWithin(asked, api);
    for (const { end } of asked)
      expect(await end).toMatchObject({ begun: true, body: { code: 'internal', retryable: true } });
    expect(codeOf(await ordinary.reply)).toBe('ok');
    expect(await api.exitCode).toBe(0);
    expectCodes(await Promise.all(resume(books, url, asked).map(({ end }) => end)), ['ok']);
    return `error: internal, retryable, after ${tookMs} ms; the ordinary request 200; exit 0; all resumed at another`;
  },
);

fault(
  { id: 'T9', injected: 'SIGTERM to a worker and an API with streams that end within their grace' },
  async (books) => {
    const { api, workers, startApi, startWorker } = await books.start();
    await Promise.all([startApi(), startWorker()]);
    const asked = openStreams(books, 'sim-stream-100-20');
    await allBegun(asked);
    for (const { pid } of [api, ...workers]) process.kill(pid, 'SIGTERM');
    expectCodes(await Promise.all(asked.map(({ end }) => end)), ['ok']);
    expect(await api.exitCode).toBe(0);
    return `${open} × done, exit 0`;
  },
);

/** Asks the program to stop and gives how long after that the last stream has ended, in milliseconds. */
async function endWithin(asked: readonly AskedStream[], program: ChildProgram | undefined): Promise<number> {
  const { result, lagMs } = await withLag(() => {
    process.kill(program?.pid ?? 0, 'SIGTERM');
    return timed(Promise.all(asked.map(({ end }) => end)));
  });
  expect(result).toBeLessThan(graceMs + 500 + lagMs);
  return result;
}
