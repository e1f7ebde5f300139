import { expect } from 'vitest';
import { freePort } from '../../dev/free-port.js';
import type { ChatReply } from '../support/deployment.js';
import { profiles } from '../support/profiles.js';
import { codeOf } from './support/balance.js';
import type { Books } from './support/books.js';
import { bothStores, catalogue } from './support/catalogue.js';
import { eventually, expectCodes } from './support/expectations.js';
import { killWorkerInCall, killWorkerOf, readChat } from './support/killed-worker.js';
import { replaceWorkers } from './support/programs.js';

/** A run is lost with each worker that is killed, or frozen for longer than its lock. */
const rules = { callsPerRequest: 2, lost: 1 };
/** Cases that need a deadline ask for one. */
const variables = { ...profiles.short, CHAT_TIMEOUT_MS: '120000' };

catalogue({ variables, workers: 2 }, (add) => {
  add(
    'W1 a worker killed in a call → another answers',
    { ...rules, lost: 1, stores: bothStores },
    killWorkerInCall,
  );

  add(
    'W1 every worker killed that takes the same job → after two starts its caller gets an error, and the third worker serves',
    { ...rules, lost: 2, stores: bothStores },
    async (books) => {
      const asked = books.ask({ model: 'sim-hang', headers: { 'Idempotency-Key': 'deadly' } });
      const first = await asked.arrived();
      await killWorkerOf(books);
      await asked.arrived(first);
      await killWorkerOf(books);
      await books.deployment.startWorker();
      const reply = await asked.reply;
      expect([codeOf(reply), reply.body.retryable]).toEqual(['internal', true]);
      expect(await readChat(books, reply)).toMatchObject({ status: 'failed', error: { code: 'internal' } });
      expectCodes([await books.chat()], ['ok']);
    },
  );

  add(
    'W2 all workers killed, with a job running and one queued → both time out, and a worker that comes late calls nobody',
    { lost: 2, stores: bothStores },
    async (books) => {
      const { workers, startWorker, simulator } = books.deployment;
      const running = books.ask({ model: 'sim-hang', headers: { Prefer: 'wait=5' } });
      const left = books.ask({ model: 'sim-hang' });
      await Promise.all([running.arrived(), left.arrived()]);
      await Promise.all(workers.map((worker) => books.kill(worker)));
      left.leave();
      const queued = books.ask({ headers: { Prefer: 'wait=2' } });
      expectCodes(await Promise.all([running.reply, queued.reply]), ['timeout']);
      const before = simulator.calls.lastId;
      await startWorker();
      await eventually(async () => expect(await books.jobs.unfinished()).toBe(0));
      expect(simulator.calls.lastId).toBe(before);
    },
  );

  add(
    'W5 a worker frozen until another has its job → its call ends when it comes back, and the answer is that of the other',
    { ...rules, lost: 1 },
    async (books) => {
      const asked = books.ask({ model: 'sim-gate-0' });
      const first = await asked.arrived();
      const { pid } = await books.jobs.workerOf('openai');
      process.kill(pid, 'SIGSTOP');
      const second = await asked.arrived(first);
      process.kill(pid, 'SIGCONT');
      await first.closed;
      expect([first.clientClosedFirst, second.ended]).toEqual([true, undefined]);
      asked.open();
      expect(codeOf(await asked.reply)).toBe('ok');
      expect(second.clientClosedFirst).toBe(false);
    },
  );

  for (const signal of ['SIGKILL', 'SIGSTOP'] as const)
    add(
      `T4 ${signal} to one of two workers, until its jobs are taken over → streams that have begun end with an error or done, the others with done`,
      { ...rules, lost: 30 },
      async (books) => {
        const begun = Array.from({ length: 20 }, () => books.stream({ model: 'sim-gate-20' }));
        await Promise.all(begun.map((stream) => stream.begun));
        const worker = await books.jobs.workerOf('openai');
        const waiting = Array.from({ length: 10 }, () => books.stream({ model: 'sim-gate-0' }));
        await Promise.all(waiting.map((stream) => stream.arrived()));
        if (signal === 'SIGKILL') await books.kill(worker);
        else process.kill(worker.pid, signal);
        // Each of them is still at its gate, so that only an error can end it.
        const ends = begun.map(({ end }) => end);
        const { begun: hasBegun, body } = await Promise.race(ends);
        expect([hasBegun, body.code, body.retryable]).toEqual([true, 'internal', true]);
        for (const stream of [...begun, ...waiting]) stream.open();
        expectCodes(await Promise.all(ends), ['ok', 'internal']);
        expectCodes(await Promise.all(waiting.map(({ end }) => end)), ['ok']);
        if (signal === 'SIGSTOP') process.kill(worker.pid, 'SIGCONT');
        expectCodes([await books.stream().end], ['ok']);
      },
    );

  add(
    'A2 a client who leaves while its worker is deaf, which dies then → the worker that takes over makes no call',
    { lost: 1 },
    async (books) => {
      const asked = books.ask({ model: 'sim-hang' });
      await asked.arrived();
      const deaf = await books.jobs.workerOf('openai');
      process.kill(deaf.pid, 'SIGSTOP');
      asked.leave();
      const running = async () => (await books.jobs.queue('openai').getActive())[0];
      await eventually(async () => expect((await running())?.data.deadline).toBe(0));
      await books.kill(deaf);
      await eventually(async () => expect(await books.jobs.unfinished()).toBe(0));
    },
  );

  add(
    'W9 one of two workers cannot reach its provider → it pauses itself again and again, and five requests fail at most',
    { callsPerRequest: 2 },
    async (books) => {
      await replaceWorkers(
        books,
        {},
        {
          ...{ OPENAI_BASE_URL: `http://127.0.0.1:${await freePort()}/v1` },
          ...{ OPENAI_CONCURRENCY: '5', BREAKER_RESET_MS: '500' },
        },
      );
      const replies: ChatReply[] = [];
      const opened = () => books.logs().split('"breaker":"open"').length - 1;
      while (opened() < 3 || replies.length < 200)
        replies.push(...(await Promise.all(Array.from({ length: 20 }, () => books.chat()))));
      expectCodes(replies, ['ok', 'provider_error']);
      // A job goes back to the queue once; only one that meets the same worker again fails there.
      expect(replies.filter(({ status }) => status !== 200).length).toBeLessThanOrEqual(5);
    },
  );

  add('N1 a provider that refuses connections, 40 chats at once → 200 by the fallback', {}, async (books) => {
    await replaceWorkers(books, { OPENAI_BASE_URL: 'http://127.0.0.1:1/v1', OPENAI_CONCURRENCY: '5' });
    // Those too that wait when the breaker opens.
    const replies = await Promise.all(
      Array.from({ length: 40 }, (_, n) => askWithFallback(books, `sim-echo@N1-${n}`).reply),
    );
    expectAnsweredByFallback(replies);
  });

  add(
    'N2 the only worker of a provider killed, a chat running and one waiting → 200 by the fallback',
    { ...rules, lost: 1 },
    async (books) => {
      const [worker] = await replaceWorkers(
        books,
        { WORKER_PROVIDERS: 'openai', OPENAI_CONCURRENCY: '1' },
        { WORKER_PROVIDERS: 'anthropic' },
      );
      const running = askWithFallback(books, 'sim-gate-0@N2-running');
      await running.arrived();
      const waiting = askWithFallback(books, 'sim-echo@N2-waiting');
      await eventually(async () => expect(await books.jobs.unfinished()).toBe(2));
      await books.kill(worker);
      running.open();
      expectAnsweredByFallback(await Promise.all([running.reply, waiting.reply]));
    },
  );
});

/** A chat that fails at OpenAI goes to Anthropic. */
const askWithFallback = (books: Books, model: string) =>
  books.ask({ model, headers: { 'X-LLM-Fallback': `anthropic/${model}` } });

function expectAnsweredByFallback(replies: readonly ChatReply[]): void {
  expectCodes(replies, ['ok']);
  const providers = replies.map(({ headers }) => headers.get('x-llm-provider'));
  expect(new Set(providers)).toEqual(new Set(['anthropic']));
}
