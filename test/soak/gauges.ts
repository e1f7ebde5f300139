import { readdirSync, readlinkSync } from 'node:fs';
import type { Queue } from 'bullmq';
import { parseConfig } from '../../shared/config/config.js';
import { providerIds } from '../../shared/contract.js';
import { queueName } from '../../shared/protocol/messages.js';
import { openQueueStore } from '../../shared/queue/stores/open.js';
import type { Lifecycle } from '../../shared/runtime/lifecycle.js';
import type { Log } from '../../shared/runtime/log.js';
import type { RunningStore } from '../bench/store.js';
import type { Books } from './books.js';
import type { Service } from './service.js';

/** What is under way in one moment; all zero, sockets aside, when there is nothing to do. */
export interface Gauges {
  /** Requests without an answer. */
  readonly asked: number;
  readonly waiting: number;
  readonly active: number;
  readonly atProvider: number;
  /** Open sockets of the API. */
  readonly apiSockets: number;
}

interface GaugeDeps {
  store: RunningStore;
  service: Service;
  books: Books;
  lifecycle: Lifecycle;
  log: Log;
}

/** Opens the queues beside the service, and gives what reads all gauges. */
export async function openGauges(deps: GaugeDeps): Promise<() => Promise<Gauges>> {
  const { store, service, books, lifecycle, log } = deps;
  const queueStore = lifecycle.opened(
    'queue store',
    openQueueStore(parseConfig(store.variables, 'migrate'), log),
    (open) => open.close(),
  );
  await queueStore.whenReady(lifecycle.stopping);
  const queues = providerIds.map((id) =>
    lifecycle.opened('queue', queueStore.createQueue(queueName(id)), (queue) => queue.close()),
  );
  return async () => ({
    asked: books.inFlight,
    ...(await countJobs(queues)),
    atProvider: await callsAt(service.simulatorUrl),
    apiSockets: openSockets(service.pids.api),
  });
}

async function countJobs(queues: readonly Queue[]): Promise<Pick<Gauges, 'waiting' | 'active'>> {
  const [active, waiting] = await Promise.all(
    [['active'] as const, ['waiting', 'delayed', 'prioritized'] as const].map(async (types) => {
      const counts = await Promise.all(queues.map((queue) => queue.getJobCounts(...types)));
      return counts.flatMap((count) => Object.values(count)).reduce((sum, jobs) => sum + jobs, 0);
    }),
  );
  return { active: active ?? 0, waiting: waiting ?? 0 };
}

async function callsAt(simulatorUrl: string): Promise<number> {
  const answer = await fetch(`${simulatorUrl}/__simulator/calls/stats`, { headers: { Connection: 'close' } });
  const { providers } = (await answer.json()) as { providers: Record<string, { inFlight: number }> };
  return Object.values(providers).reduce((sum, { inFlight }) => sum + inFlight, 0);
}

/** Nothing to be seen where there is no /proc. */
function openSockets(pid: number): number {
  try {
    return readdirSync(`/proc/${pid}/fd`).filter((name) => isSocket(`/proc/${pid}/fd/${name}`)).length;
  } catch {
    return 0;
  }
}

function isSocket(path: string): boolean {
  try {
    return readlinkSync(path).startsWith('socket:');
  } catch {
    return false;
  }
}
