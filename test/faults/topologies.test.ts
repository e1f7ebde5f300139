import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect } from 'vitest';
import { queueName } from '../../shared/protocol/messages.js';
import { namesOfKeys } from '../../shared/queue/stores/redis.js';
import { parseRedisUrl } from '../../shared/urls/redis-url.js';
import { authorization } from '../support/deployment.js';
import { profiles } from '../support/profiles.js';
import type { RedisProcess } from '../support/redis-process.js';
import { isSynchronised, type RedisTopology, startTopology } from '../support/redis-topologies.js';
import { storeOf } from '../support/stores.js';
import type { Books } from './support/books.js';
import { catalogue } from './support/catalogue.js';
import { cutAgainAndAgain } from './support/cut-again.js';
import { eventually, expectCodes, keepDoing, untilOk, untilWell } from './support/expectations.js';
import { killWorkerInCall } from './support/killed-worker.js';

/** A job whose end or taking is lost is run again after its lock. */
const variables = {
  ...profiles.short,
  WORKER_LOCK_MS: '6000',
  CHAT_TIMEOUT_MS: '90000',
  // The deadline of those who ask asynchronously.
  CHAT_MAX_WAIT_S: '20',
  BEDROCK_CONCURRENCY: '1',
};
/** So many jobs may run at once, and lose their locks. */
const again = { callsPerRequest: 2, lost: 20 };
const load = { model: 'sim-latency-200' };

for (const topology of ['cluster', 'sentinel'] as const)
  describe(topology, () => {
    let redis: RedisTopology;
    const store = async () => {
      redis = await startTopology[topology]();
      return { ...storeOf('redis'), topology, url: redis.url, stop: redis.stop };
    };
    /** The server that has the provider's queue for now. */
    const masterOf = ({ deployment }: Books, provider: 'openai' | 'bedrock'): Promise<RedisProcess> => {
      const { prefix } = parseRedisUrl(deployment.stores.REDIS_URL ?? '');
      return redis.masterOf(namesOfKeys({ topology, prefix }).queuePrefix(queueName(provider)));
    };

    catalogue({ variables, workers: 2, store }, (add) => {
      add('W1 a worker killed in a call → another answers', { ...again, lost: 1 }, killWorkerInCall);

      add(
        'R6 all connections to the store cut, again and again → every request is answered',
        again,
        cutAgainAndAgain,
      );

      add(
        'R2 the master killed before its replica has five chats and five asynchronous ones → those who wait are answered',
        { ...again, lost: 2 },
        async (books) => {
          // Both workers are busy, so that the others wait in the queue.
          const busy = Array.from({ length: 2 }, () =>
            books.ask({ provider: 'bedrock', model: 'sim-gate-0' }),
          );
          await Promise.all(busy.map((asked) => asked.arrived()));
          const master = await masterOf(books, 'bedrock');
          const replica = await redis.replicaOf(master);
          replica.freeze();
          await master.command('CLIENT', 'KILL', 'TYPE', 'replica');
          const five = Array.from({ length: 5 });
          const waiting = five.map(() => books.chat({ provider: 'bedrock' }));
          const headers = { Prefer: 'respond-async' };
          const parked = await Promise.all(five.map(() => books.chat({ provider: 'bedrock', headers })));
          expectCodes(parked, ['202']);
          await eventually(async () => expect(await books.jobs.unfinished()).toBe(12));
          await master.kill();
          replica.thaw();
          for (const asked of busy) asked.open();
          expectCodes(await Promise.all([...busy.map(({ reply }) => reply), ...waiting]), ['ok']);
          const ends = await Promise.all(parked.map((reply) => endOf(books, reply.headers.get('location'))));
          // Nothing says otherwise than it is: not known any more, late, or done after all.
          expect(ends.filter((end) => !['404', 'expired', 'completed'].includes(end))).toEqual([]);
          await master.start();
          await isSynchronised(master);
        },
      );

      const ways = [
        ['killed', 'kill', 'start'],
        ['silent', 'freeze', 'thaw'],
      ] as const;
      for (const [gone, begin, end] of ways)
        add(
          `R2 the master ${gone} under load, until after its replica has taken over → no request is lost, and all is well`,
          again,
          async (books) => {
            const { calls } = books.deployment.simulator;
            const begun = calls.lastId;
            const loading = keepDoing(50, () => books.chat(load));
            await eventually(() => expect(calls.lastId).toBeGreaterThan(begun + 20));
            const master = await masterOf(books, 'openai');
            await master[begin]();
            books.mayLoseOpen();
            await untilOk(books, load);
            await master[end]();
            await isSynchronised(master);
            await untilWell(books, load);
            const replies = await Promise.all(loading.stop());
            expectCodes(replies, [
              'ok',
              'timeout',
              'queue_unavailable',
              'provider_unavailable',
              'overloaded',
            ]);
          },
        );
    });
  });

/** How a stored chat has ended at last, or the status when it cannot be read. */
async function endOf({ deployment }: Books, location: string | null): Promise<string> {
  for (;;) {
    const response = await fetch(`${deployment.url}${location}`, {
      headers: { Authorization: authorization },
    });
    if (response.status !== 200) return String(response.status);
    const { status } = (await response.json()) as { status: string };
    if (status !== 'queued' && status !== 'running') return status;
    await delay(200);
  }
}
