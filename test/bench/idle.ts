import { setTimeout as delay } from 'node:timers/promises';
import type { Gateway } from './gateway.js';
import type { RunningStore } from './store.js';
import { countsBetween, countsPer, type StoreCounts } from './store-counts.js';
import { type Part, startMeter } from './usage.js';

/** What our processes use in a second without requests. */
export interface Idle {
  readonly cpuMs: Readonly<Partial<Record<Part, number>>>;
  readonly store?: StoreCounts;
}

const restSeconds = 2;
/** Pruning comes once in it. */
const idleSeconds = 10;

/** What is done without requests: heartbeats, looks for jobs and at what is over. */
export async function measureIdle(gateway: Gateway, store: RunningStore, signal: AbortSignal): Promise<Idle> {
  await delay(restSeconds * 1000, undefined, { signal });
  const before = await store.count?.();
  const meter = startMeter({ ...gateway.pids, store: store.pid });
  await delay(idleSeconds * 1000, undefined, { signal });
  const parts = Object.entries(meter.stop().parts);
  const after = await store.count?.();
  return {
    cpuMs: Object.fromEntries(
      parts.map(([part, { cpuSeconds }]) => [part, (cpuSeconds * 1000) / idleSeconds]),
    ),
    ...(before && after && { store: countsPer(countsBetween(before, after), idleSeconds) }),
  };
}
