import { setTimeout as delay } from 'node:timers/promises';
import { Redis } from 'ioredis';
import type { Lifecycle } from '../../shared/runtime/lifecycle.js';
import { readProcessTable } from '../bench/process-table.js';
import type { RunningStore } from '../bench/store.js';
import { memoryOf } from '../bench/usage.js';
import type { Gauges } from './gauges.js';
import type { Service } from './service.js';

/** Whose memory is looked at. */
export const processNames = ['api', 'worker 1', 'worker 2', 'simulator', 'store', 'soak'] as const;

export type ProcessName = (typeof processNames)[number];

/** What was seen at one time. */
export interface Sample {
  readonly minute: number;
  /** Resident bytes. */
  readonly memory: Readonly<Record<ProcessName, number | undefined>>;
  /** What Redis says that its data takes; absent on PostgreSQL. */
  readonly redisBytes: number | undefined;
  readonly gauges: Gauges;
}

const intervalMs = 10_000;

interface SampleDeps {
  store: RunningStore;
  service: Service;
  readGauges: () => Promise<Gauges>;
  lifecycle: Lifecycle;
}

/** Gives what takes one sample; its time counts from now. */
export function openSampler({ store, service, readGauges, lifecycle }: SampleDeps): () => Promise<Sample> {
  const startedAt = performance.now();
  const url = store.variables.REDIS_URL;
  const redis =
    url === undefined ? undefined : lifecycle.opened('redis', new Redis(url), (open) => open.disconnect());
  return async () => {
    const table = readProcessTable();
    // The soak is the parent of all: of its own family only itself counts.
    const own = table.get(process.pid)?.memory();
    return {
      minute: (performance.now() - startedAt) / 60_000,
      memory: {
        api: memoryOf(table, service.pids.api),
        'worker 1': memoryOf(table, service.pids['worker 1']),
        'worker 2': memoryOf(table, service.mortal().pid),
        simulator: memoryOf(table, service.pids.simulator),
        store: memoryOf(table, store.pid),
        soak: own && own.ownBytes + own.sharedBytes,
      },
      redisBytes: redis && usedMemory(await redis.info('memory')),
      gauges: await readGauges(),
    };
  };
}

/** Takes a sample every ten seconds until the signal aborts. */
export async function sampleUntil(
  signal: AbortSignal,
  take: () => Promise<Sample>,
  onSample: (sample: Sample) => void,
): Promise<void> {
  while (!signal.aborted) {
    onSample(await take());
    await delay(intervalMs, undefined, { signal }).catch(() => undefined);
  }
}

const usedMemory = (facts: string): number => Number(/^used_memory:(\d+)/m.exec(facts)?.[1] ?? Number.NaN);
