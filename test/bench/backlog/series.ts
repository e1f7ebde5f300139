import { randomUUID } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Queue } from 'bullmq';
import { Redis } from 'ioredis';
import { parseConfig } from '../../../shared/config/config.js';
import { type ChatJobPayload, encodeChatJob } from '../../../shared/protocol/messages.js';
import { writtenVersion } from '../../../shared/protocol/version.js';
import { addJob } from '../../../shared/queue/add-attempt.js';
import { maxShareLevel, priorityOf } from '../../../shared/queue/priority.js';
import type { QueueStore } from '../../../shared/queue/queue-store.js';
import { openQueueStore } from '../../../shared/queue/stores/open.js';
import { Lifecycle } from '../../../shared/runtime/lifecycle.js';
import type { Log } from '../../../shared/runtime/log.js';
import { messages } from '../gateway.js';
import { interleave, type Row } from '../interleaved/interleave.js';
import type { RunningStore, StoreChoice } from '../store.js';
import { startMeter } from '../usage.js';
import {
  type BacklogResults,
  type Measured,
  type Side,
  sides,
  summariseRow,
  type Waiting,
} from './results.js';

interface BacklogDeps {
  /** On Redis. */
  store: StoreChoice;
  /** How many wait. */
  jobs: number;
  rounds: number;
  dir: string;
  outer: Lifecycle;
  log: Log;
  onRound(title: string, round: Readonly<Record<Side, Measured>>): void;
}

/** BullMQ has a list for jobs without a priority, and a sorted set for the others. */
const priorities: Readonly<Record<Waiting, number>> = {
  'without priority': priorityOf(0, { isAsync: false }),
  'with priority': priorityOf(maxShareLevel, { isAsync: false }),
};

/** Adds or takes so many in each measurement, so many at once. */
const operations = 5000;
const atOnce = 32;
const fillAtOnce = 500;

/** A queue, and how its jobs wait. */
interface BenchQueue {
  readonly name: string;
  readonly queue: Queue<ChatJobPayload>;
  readonly priority: number;
}

/** Adds jobs to an empty queue and to one with a backlog in turns, and takes as many from both. */
export async function runBacklog({
  store,
  jobs,
  rounds,
  outer,
  log,
  ...deps
}: BacklogDeps): Promise<BacklogResults> {
  const dir = join(deps.dir, 'backlog');
  mkdirSync(dir);
  const lifecycle = outer.opened('backlog', new Lifecycle(log), (open) => open.close());
  const running = await store.open(lifecycle, dir);
  const config = parseConfig(running.variables, 'migrate');
  const queueStore = lifecycle.opened('queue store', openQueueStore(config, log), (open) => open.close());
  await queueStore.whenReady(lifecycle.stopping);
  const backlog = new BacklogQueues(queueStore, lifecycle, running);
  const bytesPerJob = {
    'without priority': await backlog.fill('without priority', jobs),
    'with priority': await backlog.fill('with priority', jobs),
  };
  const rows = (Object.keys(priorities) as Waiting[]).flatMap((waiting) => [
    rowOf(`adding ${waiting}`, (side) => backlog.add(side, waiting)),
    rowOf(`taking ${waiting}`, (side) => backlog.take(side, waiting)),
  ]);
  const onRound = ({ title }: { title: string }, round: Readonly<Record<Side, Measured>>) =>
    deps.onRound(title, round);
  // Once, unmeasured: code that Node compiles late must not count against the first round.
  await interleave<Side, Measured, Row<Side, Measured>>({ sides, rows, rounds: 1, onRound: () => undefined });
  const measured = await interleave<Side, Measured, Row<Side, Measured>>({ sides, rows, rounds, onRound });
  await lifecycle.close();
  return {
    ...{ jobs, bytesPerJob, payloadBytes: Buffer.byteLength(JSON.stringify(payloadAt(0))) },
    rows: measured.rows.map(({ row, rounds: all }) => summariseRow(row.title, all)),
  };
}

const rowOf = (title: string, measure: (side: Side) => Promise<Measured>): Row<Side, Measured> => ({
  title,
  measure,
});

/** An empty queue and one with a backlog, for each way of waiting. */
class BacklogQueues {
  readonly #store: QueueStore;
  readonly #lifecycle: Lifecycle;
  readonly #running: RunningStore;
  readonly #queues = new Map<string, BenchQueue>();

  constructor(store: QueueStore, lifecycle: Lifecycle, running: RunningStore) {
    this.#store = store;
    this.#lifecycle = lifecycle;
    this.#running = running;
  }

  /** Fills the queue with the backlog; gives Redis' memory for each job. */
  async fill(waiting: Waiting, jobs: number): Promise<number> {
    const queue = this.#queueOf('backlog', waiting);
    const url = this.#running.variables.REDIS_URL ?? '';
    const redis = this.#lifecycle.opened('memory', new Redis(url), (open) => open.disconnect());
    const usedBytes = async () =>
      Number(/^used_memory:(\d+)/m.exec(await redis.info('memory'))?.[1] ?? Number.NaN);
    const before = await usedBytes();
    await this.#addMany(queue, jobs, fillAtOnce);
    return ((await usedBytes()) - before) / jobs;
  }

  add(side: Side, waiting: Waiting): Promise<Measured> {
    const queue = this.#queueOf(side, waiting);
    return this.#measured(async () => this.#addMany(queue, operations, atOnce));
  }

  /** From the first job that a worker gets to the last of as many as were added. */
  async take(side: Side, waiting: Waiting): Promise<Measured> {
    const { name } = this.#queueOf(side, waiting);
    const { promise: first, resolve: begin } = Promise.withResolvers<void>();
    const { promise: last, resolve: end } = Promise.withResolvers<void>();
    let taken = 0;
    const process = async () => {
      taken += 1;
      if (taken === 1) begin();
      if (taken === operations) end();
    };
    const worker = this.#store.createWorker(name, process, { concurrency: atOnce });
    await first;
    const measured = await this.#measured(() => last);
    await worker.close();
    return measured;
  }

  #queueOf(side: Side, waiting: Waiting): BenchQueue {
    const name = `bench-${side}-${waiting}`.replaceAll(' ', '-');
    const known = this.#queues.get(name);
    if (known) return known;
    const queue = this.#lifecycle.opened(name, this.#store.createQueue(name), (open) => open.close());
    const opened = { name, queue, priority: priorities[waiting] };
    this.#queues.set(name, opened);
    return opened;
  }

  async #addMany({ queue, priority }: BenchQueue, count: number, width: number): Promise<void> {
    let left = count;
    const addNext = async () => {
      while (left > 0) {
        left -= 1;
        const job = { jobId: randomUUID(), payload: payloadAt(this.#store.now()), priority };
        await addJob(queue, this.#store, job);
      }
    };
    await Promise.all(Array.from({ length: width }, addNext));
  }

  async #measured(work: () => Promise<void>): Promise<Measured> {
    const meter = startMeter({ store: this.#running.pid });
    const startedAt = performance.now();
    await work();
    const seconds = (performance.now() - startedAt) / 1000;
    const cpuSeconds = meter.stop().parts.store?.cpuSeconds ?? Number.NaN;
    return { perSecond: operations / seconds, storeCpuMs: (cpuSeconds * 1000) / operations };
  }
}

/** The conversation of every request of the benchmark, as it waits. */
const payloadAt = (now: number): ChatJobPayload =>
  encodeChatJob({
    ...{ v: writtenVersion, provider: 'openai' as const },
    ...{ turns: [{ role: 'user', content: messages[0]?.content ?? '' }], deadline: now + 300_000 },
    ...{ replyTo: 'bench', user: randomUUID() },
  });
