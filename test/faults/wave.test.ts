import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { availableParallelism } from 'node:os';
import { expect, inject } from 'vitest';
import type { ChatReply } from '../support/deployment.js';
import { codeOf } from './support/balance.js';
import type { Books } from './support/books.js';
import { expectCodes } from './support/expectations.js';
import { fault } from './support/fault.js';
import { startOwnRedis } from './support/own-redis.js';

/** PostgreSQL takes some hundreds a second, and the case must not wait for minutes. */
const wave = inject('store').kind === 'redis' ? 5000 : 500;
const providerMs = 6000;

fault(
  {
    id: 'Q6',
    timed: true,
    injected: `${wave} requests in one wave, one API and one worker process with room for all`,
    timeoutMs: 120_000,
  },
  async (books) => {
    const redis = await startForWave(books);
    const { replies, tookMs } = await sendWave(books);
    expectCodes(replies, ['ok']);
    expect(linesOf(books, 'jobs lost to another worker')).toEqual([]);
    const cpu = redis && ` Redis ${(await cpuSecondsOf(redis.command)).toFixed(1)} s of CPU`;
    return `all 200, one call each, no lock lost; ${tookMs} ms for calls of ${providerMs};${cpu ?? ''}`;
  },
);

fault(
  {
    id: 'F2',
    injected: `the wave of Q6 while ${availableParallelism()} other programs keep every processor busy`,
    timeoutMs: 300_000,
  },
  async (books) => {
    await startForWave(books);
    const quiet = await sendWave(books);
    expectCodes(quiet.replies, ['ok']);
    const loops = startBusyLoops(books);
    const { replies, tookMs } = await sendWave(books);
    const share = 1 - (await loops.stop()) / (availableParallelism() * tookMs);
    expect(linesOf(books, 'jobs lost to another worker')).toEqual([]);
    expectCodes(replies, ['ok', 'overloaded', 'timeout']);
    const answered = replies.filter((reply) => codeOf(reply) === 'ok').length;
    expect(answered).toBeGreaterThanOrEqual(0.9 * share * wave);
    return (
      `${answered} of ${wave} answered, one call each, no lock lost; ${tookMs} ms with ` +
      `${Math.round(100 * share)} % of the processors, ${quiet.tookMs} ms with all`
    );
  },
);

/** Starts one API and one worker process with room for the whole wave, and has them ready. */
async function startForWave(books: Books): Promise<Awaited<ReturnType<typeof startOwnRedis>> | undefined> {
  const redis = inject('store').kind === 'redis' ? await startOwnRedis(books) : undefined;
  await books.start({
    ...(redis && { store: redis.store }),
    variables: {
      OPENAI_CONCURRENCY: String(wave),
      // The programs' own, in place of the catalogue's: what is tried here is whether they hold under this load.
      WORKER_LOCK_MS: '15000',
      WORKER_STALLED_CHECK_MS: '2500',
      CHAT_TIMEOUT_MS: '60000',
      OPENAI_TIMEOUT_MS: '45000',
      LOG_LEVEL: 'info',
    },
  });
  expect((await books.chat()).status).toBe(200);
  return redis;
}

/** Sends all requests at once and waits for the last answer. */
async function sendWave(books: Books): Promise<{ replies: ChatReply[]; tookMs: number }> {
  const startedAt = performance.now();
  const asked = Array.from({ length: wave }, () => books.ask({ model: `sim-latency-${providerMs}` }));
  const replies = await Promise.all(asked.map(({ reply }) => reply));
  return { replies, tookMs: Math.round(performance.now() - startedAt) };
}

/** Keeps every processor busy until it is stopped; gives the processor time that was taken, in milliseconds. */
function startBusyLoops(books: Books): { stop(): Promise<number> } {
  // Each in a session of its own: Linux divides the processors between sessions first.
  const loops = Array.from({ length: availableParallelism() }, () =>
    spawn(process.execPath, ['-e', busyLoop], { detached: true }),
  );
  books.release(() => void loops.map((loop) => loop.kill('SIGKILL')));
  return { stop: async () => (await Promise.all(loops.map(endLoop))).reduce((total, ms) => total + ms, 0) };
}

/** Turns until its input ends, and prints the processor time that it took, in milliseconds. */
const busyLoop = `
  let isOver = false;
  process.stdin.on('end', () => { isOver = true; }).resume();
  const turn = () => {
    for (const until = performance.now() + 50; performance.now() < until; );
    if (!isOver) return setImmediate(turn);
    const { user, system } = process.cpuUsage();
    console.log((user + system) / 1000);
  };
  turn();`;

async function endLoop(loop: ChildProcess): Promise<number> {
  const printed: string[] = [];
  loop.stdout?.on('data', (data) => printed.push(String(data)));
  loop.stdin?.end();
  await once(loop, 'close');
  return Number(printed.join(''));
}

const linesOf = (books: Books, message: string): string[] =>
  books.deployment
    .logs()
    .split('\n')
    .filter((line) => line.includes(message));

async function cpuSecondsOf(command: (name: string, ...args: string[]) => Promise<unknown>): Promise<number> {
  const info = String(await command('INFO', 'cpu'));
  const of = (name: string) => Number(new RegExp(`^${name}:([\\d.]+)`, 'm').exec(info)?.[1]);
  return of('used_cpu_user') + of('used_cpu_sys');
}
