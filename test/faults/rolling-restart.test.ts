import { expect } from 'vitest';
import type { ChildProgram } from '../../dev/child-program.js';
import { type Balancer, createBalancer } from '../support/balancer.js';
import { fault } from './support/fault.js';

const everyMs = 50;
const minMs = 15_000;

fault(
  {
    id: 'W6',
    injected:
      'SIGTERM to each of two workers and two APIs in turn, with a successor for each, at 20 requests/s',
    timeoutMs: 150_000,
  },
  async (books) => {
    const { url, api, workers, startWorker, startApi, simulator } = await books.start({
      workers: 2,
      variables: { CHAT_TIMEOUT_MS: '55000' },
    });
    const balancer = createBalancer();
    books.release(() => balancer.close());
    await balancer.add(url);
    const other = await startApi();
    await balancer.add(other.url);
    const answers = await underLoad(balancer, async () => {
      for (const worker of workers) {
        await stop(worker);
        await startWorker();
      }
      for (const program of [api, other.child]) {
        await stop(program);
        // Before the next one stops: a worker has to be there.
        await balancer.add((await startApi()).url);
      }
    });
    expect(answers.filter(({ status }) => status !== 200)).toEqual([]);
    const calls = Map.groupBy(simulator.calls.list(), ({ model }) => model);
    expect(answers.filter(({ model }) => calls.get(model)?.length !== 1)).toEqual([]);
    expect(answers.length).toBeGreaterThan((0.7 * minMs) / everyMs);
    return `${answers.length} of ${answers.length} answered 200 through a load balancer, one call each; every exit 0`;
  },
);

/** Asks twenty times a second until `work` is done, and for fifteen seconds at least. Gives what became of each. */
async function underLoad(balancer: Balancer, work: () => Promise<void>) {
  const asked: Promise<{ model: string; status: unknown }>[] = [];
  const asking = setInterval(() => {
    const model = `sim-latency-700@${asked.length}`;
    const status = balancer.chat(model).catch((error: unknown) => String(error));
    asked.push(status.then((known) => ({ model, status: known })));
  }, everyMs);
  const longEnough = new Promise((resolve) => setTimeout(resolve, minMs));
  await Promise.all([work(), longEnough]).finally(() => clearInterval(asking));
  return Promise.all(asked);
}

async function stop(program: ChildProgram | undefined): Promise<void> {
  if (program === undefined) throw new TypeError('no such program');
  process.kill(program.pid, 'SIGTERM');
  expect(await program.exitCode).toBe(0);
}
