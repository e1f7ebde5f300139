import { expect } from 'vitest';
import { type ProviderId, providerIds } from '../../shared/contracts/contract.js';
import type { ChatReply } from '../support/deployment.js';
import { ofEveryPool, profiles } from '../support/profiles.js';
import { codeOf } from './support/balance.js';
import type { Books } from './support/books.js';
import { catalogue } from './support/catalogue.js';
import { eventually, expectCodes, linesWith, untilWell } from './support/expectations.js';
import { replaceWorkers, terminate } from './support/programs.js';

const wait = (seconds: number) => ({ Prefer: `wait=${seconds}` });

/** Of what should end after a second or two; all other times of the profile are two minutes. */
function expectInTime(ends: readonly Pick<ChatReply, 'tookMs'>[]): void {
  for (const { tookMs } of ends) expect(tookMs).toBeLessThan(10_000);
}

const streamAll = (books: Books, models: readonly string[], url = books.deployment.url) =>
  models.flatMap((model) => providerIds.map((provider) => books.stream({ url, provider, model })));

catalogue({ variables: profiles.plain }, (add) => {
  add(
    'D1 calls that hang, stop in the body or drip at every provider, and a deadline of a second → timeout, and other models are called',
    {},
    async (books) => {
      const replies = await Promise.all(
        ['sim-hang', 'sim-hang-body', 'sim-drip-50'].flatMap((model) =>
          providerIds.map((provider) => books.chat({ provider, model, headers: wait(1) })),
        ),
      );
      expectCodes(replies, ['timeout']);
      expectInTime(replies);
      expectCodes(await Promise.all(providerIds.map((provider) => books.chat({ provider }))), ['ok']);
    },
  );

  add(
    'D2 clocks of API, worker and store 1.8 s apart in all directions → what is in time is answered, and calls end with the deadline',
    {},
    async (books) => {
      const [ahead, behind] = [1800, -1800].map(clockAhead);
      const starting = [ahead, behind].map((variables) => books.deployment.startApi(variables));
      await replaceWorkers(
        books,
        { ...ahead, WORKER_PROVIDERS: 'openai' },
        { ...behind, WORKER_PROVIDERS: 'anthropic' },
      );
      for (const { url } of await Promise.all(starting))
        for (const provider of ['openai', 'anthropic']) {
          // The first call of an SDK takes longer.
          expectCodes([await books.chat({ url, provider })], ['ok']);
          // Less than API and worker may be apart.
          const answered = await books.chat({ url, provider, headers: wait(3) });
          expect([codeOf(answered), queuedMs(answered) >= 0]).toEqual(['ok', true]);
          const late = books.ask({ url, provider, model: 'sim-hang', headers: wait(1) });
          const call = await late.arrived();
          expectCodes([await late.reply], ['timeout']);
          expectInTime([await late.reply]);
          await call.closed;
        }
    },
  );

  add(
    "D3 one of two workers' clocks jumps by two minutes, and back → it takes no job meanwhile, and works on after it",
    { callsPerRequest: 2 },
    async (books) => {
      const { deployment } = books;
      const [healthy] = deployment.workers;
      const worker = await deployment.startWorker(jumping);
      expectCodes(await chats(books, 20), ['ok']);
      process.kill(worker.pid, 'SIGUSR2');
      await logged(books, 'the clock has jumped');
      const replies = await chats(books, 60);
      // A worker that was waiting for a job when it was paused still takes that one.
      expect(replies.filter((reply) => codeOf(reply) !== 'ok').length).toBeLessThanOrEqual(1);
      process.kill(worker.pid, 'SIGUSR2');
      await logged(books, 'the clock agrees');
      await terminate(healthy);
      // The API hears with the next heartbeat that the other worker takes jobs again.
      await untilWell(books);
    },
  );

  add(
    'T3 streams that never begin, or stall, of every provider → provider_timeout, plain or as their end',
    {},
    async (books) => {
      await replaceWorkers(books, {
        ...ofEveryPool('CONCURRENCY', 500),
        ...ofEveryPool('FIRST_TOKEN_TIMEOUT_MS', 2000),
        ...ofEveryPool('IDLE_TIMEOUT_MS', 2000),
      });
      const silent = streamAll(books, ['sim-hang', 'sim-stall-0', 'sim-drip']);
      const stalled = streamAll(books, ['sim-stall-20']);
      const ends = await Promise.all([...silent, ...stalled].map(({ end }) => end));
      expect(ends.map(({ begun, body }) => [begun, body.code])).toEqual([
        ...silent.map(() => [false, 'provider_timeout']),
        ...stalled.map(() => [true, 'provider_timeout']),
      ]);
      expectInTime(ends);
    },
  );

  add(
    'T3 models of every provider that think for longer than they may be silent, streamed and whole → answered if they show life, else provider_timeout, and no breaker opens',
    {},
    async (books) => {
      await replaceWorkers(books, {
        ...ofEveryPool('CONCURRENCY', 500),
        ...ofEveryPool('FIRST_TOKEN_TIMEOUT_MS', 3000),
        ...ofEveryPool('IDLE_TIMEOUT_MS', 3000),
      });
      const askAll = (model: string, providers: readonly ProviderId[]) =>
        Promise.all(
          providers.flatMap((provider) => {
            const call = { provider, model };
            return [books.stream({ ...call, url: books.deployment.url }).end, books.chat(call)];
          }),
        );
      // A sign of life each 600 ms; Vertex AI has none.
      const thinking = askAll('sim-think-6000', ['openai', 'anthropic', 'bedrock']);
      // More than open a breaker.
      const silent = (
        await Promise.all(Array.from({ length: 5 }, () => askAll('sim-think-silent-60000', providerIds)))
      ).flat();
      expectCodes(silent, ['provider_timeout']);
      expectInTime(silent);
      expectCodes(await thinking, ['ok']);
      expect(linesWith(books, 'breaker changed')).toEqual([]);
    },
  );

  add(
    'T3 streams that outlast their time-outs, but are not silent → done, and timeout where their caller sets a deadline',
    {},
    async (books) => {
      const timeoutMs = 4000;
      const { url } = await books.deployment.startApi({ CHAT_TIMEOUT_MS: String(timeoutMs) });
      await replaceWorkers(books, ofEveryPool('TIMEOUT_MS', timeoutMs));
      const streams = streamAll(books, ['sim-gate-20'], url);
      const bounded = books.stream({ url, provider: 'bedrock', model: 'sim-gate-20', headers: wait(3) });
      await Promise.all([bounded, ...streams].map(({ begun }) => begun));
      // It was asked after all of them.
      expectCodes([await books.chat({ url, provider: 'bedrock', model: 'sim-hang' })], ['timeout']);
      for (const stream of streams) stream.open();
      expectCodes(await Promise.all(streams.map(({ end }) => end)), ['ok']);
      expect(await bounded.end).toMatchObject({ begun: true, body: { code: 'timeout' } });
    },
  );
});

const preloading = (script: string): { NODE_OPTIONS: string } => ({
  NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(script)}`,
});

/** Variables with which a program's clock is ahead by this many milliseconds. */
const clockAhead = (ms: number) => preloading(`const now = Date.now; Date.now = () => now() + ${ms};`);

/** Variables with which each SIGUSR2 moves a program's clock: forward by two minutes, and back again. */
const jumping = preloading(
  'const now = Date.now; let aheadMs = 0; Date.now = () => now() + aheadMs; process.on("SIGUSR2", () => { aheadMs = 120000 - aheadMs; });',
);

const queuedMs = ({ headers }: ChatReply): number =>
  Number(/queue;dur=(-?[\d.]+)/.exec(headers.get('server-timing') ?? '')?.[1]);

const chats = (books: Books, count: number): Promise<ChatReply[]> =>
  Promise.all(Array.from({ length: count }, () => books.chat()));

/** Resolves once a program has logged these words. */
const logged = (books: Books, words: string): Promise<void> =>
  eventually(() => expect(books.logs()).toContain(words));
