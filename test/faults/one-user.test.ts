import { spawn } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { expect } from 'vitest';
import { addUser } from '../support/accounts.js';
import { promptCanary } from '../support/canaries.js';
import type { ChatCall } from '../support/deployment.js';
import { profiles } from '../support/profiles.js';
import type { Books } from './support/books.js';
import { catalogue } from './support/catalogue.js';
import { expectCodes, keepDoing, linesWith } from './support/expectations.js';

const slowModel = 'sim-latency-1500@F1-slow';
const defaultModel = 'sim-echo@F1-default';
const variables = {
  ...profiles.plain,
  OPENAI_CONCURRENCY: '20',
  OPENAI_MODEL: defaultModel,
  OPENAI_MODELS: `${slowModel},*`,
  // The default: a worker that is too busy to renew its locks would lose them.
  WORKER_LOCK_MS: '15000',
};

/** Begins something, and gives what ends it. */
type Attack = (books: Books) => () => void;

/** Chats at once; those that are still waited for at the end are left. */
const chats =
  (count: number, call: (n: number) => ChatCall): Attack =>
  (books) => {
    const asked = Array.from({ length: count }, (_, n) => books.ask(call(n)));
    for (const { reply } of asked) reply.catch(() => undefined);
    return () => {
      for (const { leave } of asked) leave();
    };
  };

/** Again and again until the end. */
const repeated =
  (everyMs: number, attack: Attack): Attack =>
  (books) => {
    const ends = [attack(books)];
    const repetition = keepDoing(everyMs, () => ends.push(attack(books)));
    return () => {
      repetition.stop();
      for (const end of ends) end();
    };
  };

/** Bodies without an end, or of megabytes, are in `api/bodies-in-flight`; calls that their caller cuts are P11. */
const attacks: Record<string, (books: Books) => ReturnType<Attack> | Promise<ReturnType<Attack>>> = {
  'has every provider of a fallback fail': repeated(2000, (books) => {
    for (let n = 0; n < 10; n += 1) failAll(books, n);
    return () => undefined;
  }),
  'asks 500 times at once': chats(500, (n) => ({ model: `sim-latency-${1000 + 50 * (n % 20)}` })),
  // Last: what the other asks for shares a budget from now on.
  'uses up the retries of many models': async (books) => {
    // More than have a budget of their own, and which keep what they have: their breakers are open.
    const models = Array.from({ length: 60 }, (_, n) => `sim-status-500@F1-name-${n}`);
    await Promise.all(models.flatMap((model) => Array.from({ length: 10 }, () => books.chat({ model }))));
    return repeated(
      500,
      chats(60, (n) => ({ model: models[n] ?? '' })),
    )(books);
  },
};

/** A chat whose fallbacks fail too; each has an entry in the books, for the calls that are made of it. */
function failAll(books: Books, n: number): void {
  const next = [1, 2, 3, 4].map((m) => `sim-status-500@F1-next-${n}-${m}`);
  const fallback = next.map((model) => `openai/${model}`).join(',');
  const { reply } = books.ask({
    model: `sim-status-500@F1-first-${n}`,
    headers: { 'X-LLM-Fallback': fallback },
  });
  for (const model of next) void books.send(() => reply, model).catch(() => undefined);
}

catalogue({ variables }, (add) => {
  let other: string | undefined;
  let asked = 0;

  for (const [attack, begin] of Object.entries(attacks))
    add(
      `F1 one user ${attack}, another asks for the default model, a slow one, and one that fails once → all is answered`,
      { callsPerRequest: 2 },
      async (books) => {
        other ??= await addUser(books.deployment, 'other');
        const headers = { Authorization: other };
        const byDefault = { messages: [{ content: promptCanary }], headers };
        const end = await begin(books);
        books.release(end);
        for (let n = 0; n < 3; n += 1) {
          asked += 1;
          const replies = await Promise.all([
            books.send(() => books.deployment.chat(byDefault), defaultModel),
            books.chat({ model: slowModel, headers }),
            books.chat({ model: `sim-fail-1-503-F1-${asked}@F1-once-${asked}`, headers }),
          ]);
          expectCodes(replies, ['ok']);
        }
        end();
      },
    );

  add(
    'F2 as many requests as one user has room for, while other programs keep every processor busy → none is called twice',
    {},
    async (books) => {
      keepProcessorsBusy(books);
      // Three quarters of the slots.
      const wave = Array.from({ length: 375 }, () =>
        books.ask({ provider: 'anthropic', model: 'sim-gate-0' }),
      );
      await Promise.all(wave.map((asked) => asked.arrived().catch(() => undefined)));
      for (const asked of wave) asked.open();
      expectCodes(await Promise.all(wave.map(({ reply }) => reply)), ['ok', 'overloaded', 'timeout']);
      expect(linesWith(books, 'jobs lost to another worker')).toEqual([]);
    },
  );
});

/** Until the end of the case, or of this process. */
function keepProcessorsBusy({ release }: Books): void {
  const loop = `
    process.stdin.on('end', () => process.exit()).resume();
    const turn = () => {
      for (const until = performance.now() + 50; performance.now() < until; );
      setImmediate(turn);
    };
    turn();`;
  // Each in a session of its own: Linux divides the processors between sessions first.
  const loops = Array.from({ length: availableParallelism() }, () =>
    spawn(process.execPath, ['-e', loop], { detached: true }),
  );
  release(() => {
    for (const one of loops) one.kill('SIGKILL');
  });
}
