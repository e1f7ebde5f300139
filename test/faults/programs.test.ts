import { once } from 'node:events';
import { connect } from 'node:net';
import { expect } from 'vitest';
import { providerIds } from '../../shared/contracts/contract.js';
import { type Balancer, createBalancer } from '../support/balancer.js';
import type { ChatReply } from '../support/deployment.js';
import { patienceMs } from '../support/patience.js';
import { profiles } from '../support/profiles.js';
import { openRedis } from '../support/redis-masters.js';
import { openWireTo } from '../support/wire.js';
import { codeOf } from './support/balance.js';
import type { Books } from './support/books.js';
import { bothStores, catalogue } from './support/catalogue.js';
import { eventually, expectCodes, linesWith } from './support/expectations.js';
import { replaceWorkers, terminate } from './support/programs.js';
import { providerOf } from './support/requests.js';
import type { AskedStream } from './support/streams.js';

/** Programs that should not wait so long get other ones. */
const graces = { SHUTDOWN_GRACE_MS: '60000', STREAM_GRACE_MS: '60000' };
const variables = { ...profiles.plain, ...graces, BEDROCK_CONCURRENCY: '2' };
const soon = '1000';

catalogue({ variables }, (add) => {
  add('W4 a worker frozen, but not for as long as its lock → 200 and one call', {}, async (books) => {
    await books.deployment.startWorker();
    const asked = books.ask({ model: 'sim-gate-0' });
    await asked.arrived();
    const { pid } = await books.jobs.workerOf('openai');
    process.kill(pid, 'SIGSTOP');
    await stalledChecks(books);
    process.kill(pid, 'SIGCONT');
    asked.open();
    expect(codeOf(await asked.reply)).toBe('ok');
  });

  add(
    'W6 SIGTERM to a worker with two jobs active and three waiting → it finishes the two and exits, and the next worker takes the others',
    { stores: bothStores },
    async (books) => {
      const { workers, simulator, startWorker } = books.deployment;
      const [worker] = workers;
      const active = [1, 2].map(() => books.ask({ provider: 'bedrock', model: 'sim-gate-0' }));
      await Promise.all(active.map((asked) => asked.arrived()));
      const before = simulator.calls.lastId;
      const waiting = [1, 2, 3].map(() => books.ask({ provider: 'bedrock' }));
      await eventually(async () => expect(await books.jobs.unfinished()).toBe(5));
      const ended = terminate(worker);
      await untilDraining(worker);
      for (const asked of active) asked.open();
      await ended;
      expectCodes(await Promise.all(active.map(({ reply }) => reply)), ['ok']);
      expect(simulator.calls.lastId).toBe(before);
      await startWorker();
      expectCodes(await Promise.all(waiting.map(({ reply }) => reply)), ['ok']);
    },
  );

  add(
    'W6 SIGTERM to a worker whose last job ends, and a store that does not answer for now → the answer is stored, exit 0',
    {},
    async (books) => {
      const { stores } = books.deployment;
      const wire = await openWireTo(stores.REDIS_URL ?? '');
      books.release(wire.close);
      const through = { REDIS_URL: wire.url };
      const [busy, idle] = await replaceWorkers(
        books,
        { ...through, WORKER_PROVIDERS: 'openai' },
        { ...through, WORKER_PROVIDERS: 'anthropic' },
      );
      const asked = books.ask({ model: 'sim-gate-0' });
      const call = await asked.arrived();
      wire.freeze();
      asked.open();
      await call.closed;
      const ended = terminate(busy);
      // It has waited for the store as long as a worker without jobs does.
      await idle?.stop({ graceMs: patienceMs });
      wire.thaw();
      expect(codeOf(await asked.reply)).toBe('ok');
      await ended;
      const gaveUp = linesWith(books, 'stopped without the queue store');
      expect(gaveUp.filter((line) => line.includes(`"pid":${busy?.pid},`))).toEqual([]);
    },
  );

  add(
    'W6 a rolling restart of two workers and two APIs under load → all 200, one call each',
    {},
    async (books) => {
      const { url, api, workers, startWorker, startApi } = books.deployment;
      const [other, second] = await Promise.all([startApi(), startWorker()]);
      const balancer = createBalancer();
      books.release(() => balancer.close());
      for (const one of [url, other.url]) await balancer.add(one);
      const replies = await underLoad(books, balancer, async () => {
        for (const worker of [...workers, second]) {
          await terminate(worker);
          await startWorker();
        }
        for (const program of [api, other.child]) {
          await terminate(program);
          await balancer.add((await startApi()).url);
        }
      });
      expectCodes(replies, ['ok']);
    },
  );

  add(
    'W7 SIGTERM to a worker with a job that outlasts the grace → an error, its call is cut, exit 0',
    {},
    async (books) => {
      const [worker] = await replaceWorkers(books, { SHUTDOWN_GRACE_MS: soon });
      const asked = books.ask({ model: 'sim-hang' });
      const call = await asked.arrived();
      await terminate(worker);
      expect(codeOf(await asked.reply)).toBe('provider_unavailable');
      await call.closed;
    },
  );

  add(
    'A5 SIGTERM to an API and a worker with chats and streams in flight → they say that they drain, answer all, and exit 0',
    {},
    async (books) => {
      const { api, workers } = books.deployment;
      const chats = [1, 2, 3].map(() => books.ask({ model: 'sim-gate-0' }));
      const streams = openStreams(books);
      await Promise.all([...chats.map((asked) => asked.arrived()), allBegun(streams)]);
      const programs = [api, ...workers];
      const ended = programs.map(terminate);
      await Promise.all(programs.map(untilDraining));
      for (const asked of [...chats, ...streams]) asked.open();
      expectCodes(await Promise.all([...chats.map(({ reply }) => reply), ...endsOf(streams)]), ['ok']);
      await Promise.all(ended);
    },
  );

  add(
    'A5 SIGTERM to an API with chats and streams that outlast the grace → errors, exit 0, the calls are cut but those of stored chats',
    {},
    async (books) => {
      const { child, url } = await books.deployment.startApi({
        ...{ SHUTDOWN_GRACE_MS: soon, STREAM_GRACE_MS: '500' },
      });
      await once(connect(child.port, '127.0.0.1'), 'connect');
      const chat = { url, model: 'sim-gate-0@A5', headers: { 'Idempotency-Key': 'A5-chat' } };
      const stream = { url, model: 'sim-gate-20@A5', headers: { 'Idempotency-Key': 'A5-stream' } };
      const asked = [books.ask(chat), books.stream(stream)];
      for (const provider of providerIds)
        asked.push(
          books.ask({ url, provider, model: 'sim-gate-0' }),
          books.stream({ url, provider, model: 'sim-gate-20' }),
        );
      const [storedChat, storedStream, ...others] = await Promise.all(asked.map((one) => one.arrived()));
      const startedAt = performance.now();
      await terminate(child);
      // A connection without a request would be open for half a minute.
      expect(performance.now() - startedAt).toBeLessThan(10_000);
      expectCodes(await Promise.all(asked.map((one) => ('end' in one ? one.end : one.reply))), ['internal']);
      await Promise.all(others.map(({ closed }) => closed));
      expect(others.map(({ clientClosedFirst }) => clientClosedFirst)).toEqual(others.map(() => true));
      expect([storedChat?.ended, storedStream?.ended]).toEqual([undefined, undefined]);
      const again = [
        books.ask({ ...chat, url: books.deployment.url }),
        books.stream({ ...stream, url: books.deployment.url }),
      ];
      for (const one of again) one.open();
      expectCodes(await Promise.all(again.map((one) => ('end' in one ? one.end : one.reply))), ['ok']);
    },
  );

  add(
    'T9 SIGTERM to a worker with streams that outlast their grace → retryable errors, and other requests are answered',
    {},
    async (books) => {
      const [worker] = await replaceWorkers(books, { STREAM_GRACE_MS: soon });
      const streams = openStreams(books);
      const ordinary = books.ask({ model: 'sim-gate-0' });
      await Promise.all([allBegun(streams), ordinary.arrived()]);
      const ended = terminate(worker);
      const error = { begun: true, body: { code: 'provider_unavailable', retryable: true } };
      expect(await Promise.all(endsOf(streams))).toMatchObject(streams.map(() => error));
      ordinary.open();
      expect(codeOf(await ordinary.reply)).toBe('ok');
      await ended;
    },
  );

  add(
    'T9 SIGTERM to an API with stored streams that outlast their grace → retryable errors, another API resumes them, and other requests are answered',
    {},
    async (books) => {
      const { child, url } = await books.deployment.startApi({ STREAM_GRACE_MS: soon });
      const calls = Array.from({ length: 8 }, (_, n) => ({
        ...{ provider: providerOf(n), model: `sim-gate-20@T9-${n}` },
        headers: { 'Idempotency-Key': `T9-${n}` },
      }));
      const streams = calls.map((call) => books.stream({ ...call, url }));
      const ordinary = books.ask({ url, model: 'sim-gate-0' });
      await Promise.all([allBegun(streams), ordinary.arrived()]);
      const ended = terminate(child);
      const error = { begun: true, body: { code: 'internal', retryable: true } };
      expect(await Promise.all(endsOf(streams))).toMatchObject(streams.map(() => error));
      ordinary.open();
      expect(codeOf(await ordinary.reply)).toBe('ok');
      await ended;
      const resumed = calls.map(({ headers, ...call }, n) =>
        books.stream({
          ...call,
          headers: { ...headers, 'Last-Event-ID': streams[n]?.seen.lastEventId ?? '' },
        }),
      );
      for (const stream of resumed) stream.open();
      expectCodes(await Promise.all(endsOf(resumed)), ['ok']);
    },
  );
});

const openStreams = (books: Books): AskedStream[] =>
  Array.from({ length: 8 }, (_, n) => books.stream({ provider: providerOf(n), model: 'sim-gate-20' }));

const allBegun = (streams: readonly AskedStream[]) => Promise.all(streams.map(({ begun }) => begun));
const endsOf = (streams: readonly AskedStream[]) => streams.map(({ end }) => end);

/** Resolves when a worker has looked twice more for jobs that have lost their locks. */
async function stalledChecks({ jobs, deployment, release }: Books): Promise<void> {
  const { redis } = await openRedis(deployment.stores.REDIS_URL ?? '');
  release(() => redis.disconnect());
  const seen = new Set<string>();
  await eventually(async () => {
    seen.add((await redis.get(jobs.queue('openai').toKey('stalled-check'))) ?? '');
    seen.delete('');
    expect(seen.size).toBe(3);
  });
}

/** A signal takes a moment to arrive. */
const untilDraining = (program: { port: number } | undefined): Promise<void> =>
  eventually(async () => {
    const answer = await fetch(`http://127.0.0.1:${program?.port}/readyz`, {
      headers: { Connection: 'close' },
    });
    expect([answer.status, await answer.json()]).toMatchObject([503, { status: 'draining' }]);
  });

/** Ten callers ask through the balancer, one request after the other, until `work` is done; gives all answers. */
async function underLoad(books: Books, balancer: Balancer, work: () => Promise<void>): Promise<ChatReply[]> {
  const replies: ChatReply[] = [];
  let isDone = false;
  const askOn = async () => {
    while (!isDone) replies.push(await books.send((model) => askThrough(balancer, model), 'sim-latency-300'));
  };
  const callers = Promise.all(Array.from({ length: 10 }, askOn));
  await work().finally(() => {
    isDone = true;
  });
  await callers;
  return replies;
}

async function askThrough(balancer: Balancer, model: string): Promise<ChatReply> {
  const headers = { 'X-LLM': 'openai', 'X-LLM-Model': model };
  const answer = await balancer.send('/chat', {
    method: 'POST',
    headers,
    body: '{"messages":[{"content":"Hi"}]}',
  });
  return {
    status: answer.status,
    headers: answer.headers,
    body: (await answer.json()) as ChatReply['body'],
    tookMs: 0,
  };
}
