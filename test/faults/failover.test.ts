import { setTimeout as delay } from 'node:timers/promises';
import { expect, inject } from 'vitest';
import { queueName } from '../../shared/protocol/messages.js';
import { namesOfKeys } from '../../shared/queue/stores/redis.js';
import { authorization } from '../support/deployment.js';
import type { RedisProcess } from '../support/redis-process.js';
import { isSynchronised, type RedisTopology, startTopology } from '../support/redis-topologies.js';
import type { StoreServer } from '../support/stores.js';
import type { Books } from './support/books.js';
import { eventually, expectCodes, keepDoing, timeUntilOk } from './support/expectations.js';
import { fault } from './support/fault.js';

/** Of a load. */
const everyMs = 50;
/** The second of silence after which a master counts as down, the vote, and the spread of its result. */
const takenOverMs = 8000;

/** Redis on several servers that one case alone uses. */
interface OwnTopology extends RedisTopology {
  /** To start a deployment on; others use the same database. */
  readonly store: StoreServer;
  /** The server that has the queue of OpenAI for now. */
  master(): Promise<RedisProcess>;
}

/** Starts one of the kind that the run is on; it ends with the case. */
async function startOwnTopology(books: Books): Promise<OwnTopology> {
  const { topology, databaseUrl } = inject('store');
  if (topology === undefined) throw new Error('this run has one server alone');
  const own = await startTopology[topology]();
  books.release(own.stop);
  const key = namesOfKeys({ topology, prefix: undefined }).queuePrefix(queueName('openai'));
  return {
    ...own,
    store: { kind: 'redis', topology, url: own.url, databaseUrl },
    master: () => own.masterOf(key),
  };
}

interface Failover {
  books: Books;
  /** The master that goes. */
  old: RedisProcess;
  begin: () => Promise<void> | void;
  end: () => Promise<void> | void;
}

/** A load during which the master goes, its replica takes over, and the old master comes back to be a replica. */
async function underLoad({ books, old, begin, end }: Failover): Promise<string> {
  const load = keepDoing(everyMs, () => books.chat({ model: 'sim-latency-200' }));
  await eventually(() => expect(books.deployment.simulator.calls.lastId).toBeGreaterThan(20));
  await begin();
  const awayMs = await timeUntilOk(books);
  await end();
  await eventually(() => isSynchronised(old));
  await delay(1000);
  const replies = await Promise.all(load.stop());
  expectCodes(replies, ['ok', 'timeout', 'queue_unavailable', 'provider_unavailable']);
  // The last ones came when all was well again.
  expectCodes(replies.slice(-20), ['ok']);
  expect(awayMs).toBeLessThan(takenOverMs);
  const reEnqueued = books.deployment.logs().match(/lost job added again/g)?.length ?? 0;
  return `serves ${awayMs} ms after it went; ${reEnqueued} jobs were added again`;
}

const rules = { id: 'R2', stores: ['redis'], onTopologies: true, callsPerRequest: 2 } as const;

const ways = [
  ['is killed with -9', 'kill', 'comes back', 'start'],
  ['falls silent', 'freeze', 'speaks again', 'thaw'],
] as const;
for (const [goes, begin, comesBack, end] of ways)
  fault(
    { ...rules, injected: `the master ${goes} under load; its replica takes over, and it ${comesBack}` },
    async (books) => {
      const redis = await startOwnTopology(books);
      await books.start({ store: redis.store, workers: 2 });
      const master = await redis.master();
      return underLoad({ books, old: master, begin: () => master[begin](), end: () => master[end]() });
    },
  );

fault(
  {
    ...rules,
    injected: 'the master killed with -9 before its replica has got five chats and five asynchronous ones',
  },
  async (books) => {
    const redis = await startOwnTopology(books);
    const { url, startWorker } = await books.start({
      store: redis.store,
      // The second is the deadline of those who ask asynchronously.
      variables: { CHAT_TIMEOUT_MS: '12000', CHAT_MAX_WAIT_S: '12' },
    });
    expect((await books.chat()).status).toBe(200);
    // Takes no job, but sends heartbeats: no request is refused.
    const [worker] = books.deployment.workers;
    process.kill(worker?.pid ?? 0, 'SIGSTOP');
    const master = await redis.master();
    const replica = await redis.replicaOf(master);
    replica.freeze();
    await master.command('CLIENT', 'KILL', 'TYPE', 'replica');
    const waiting = Array.from({ length: 5 }, () => books.chat());
    const parked = await Promise.all(
      Array.from({ length: 5 }, () => books.chat({ headers: { Prefer: 'respond-async' } })),
    );
    expect(parked.map(({ status }) => status)).toEqual([202, 202, 202, 202, 202]);
    await eventually(async () => expect(await books.jobs.unfinished()).toBe(10));
    await master.kill();
    replica.thaw();
    await startWorker();
    expectCodes(await Promise.all(waiting), ['ok']);
    process.kill(worker?.pid ?? 0, 'SIGCONT');
    const ends = await Promise.all(parked.map(({ headers }) => endOf(`${url}${headers.get('location')}`)));
    // Nothing says otherwise than it is: not known any more, late, or done after all.
    expect(ends.filter((end) => !['404', 'expired', 'completed'].includes(end))).toEqual([]);
    return `those who waited 200; the asynchronous ones ${ends.join(', ')}`;
  },
);

/** How a stored chat has ended at last, or the status when it cannot be read. */
async function endOf(location: string): Promise<string> {
  for (;;) {
    const response = await fetch(location, { headers: { Authorization: authorization } });
    if (response.status !== 200) return String(response.status);
    const { status } = (await response.json()) as { status: string };
    if (status !== 'queued' && status !== 'running') return status;
    await delay(200);
  }
}
