import { setTimeout as delay } from 'node:timers/promises';
import { expect, inject } from 'vitest';
import type { ChatReply } from '../support/deployment.js';
import { openWireTo, type Wire } from '../support/wire.js';
import type { Books } from './support/books.js';
import { expectCodes, keepDoing, tookMsOf } from './support/expectations.js';
import { fault } from './support/fault.js';

/** As promised, from the moment at which the connections have died. */
const wellAfterMs = 10_000;
const everyMs = 100;
/** Asked one after the other, before and after. */
const samples = 20;
/** The records are read once a second, in case a message was lost; a lost wake-up costs as much or more. */
const noticeableMs = 500;

/** A call whose outcome could not be stored within its lock is made once more. */
const rules = { id: 'R10', timed: true, callsPerRequest: 2, timeoutMs: 90_000 } as const;

for (const program of ['API', 'worker'])
  fault(
    { ...rules, injected: `the ${program}'s connections to a healthy store die without a word, under load` },
    async (books) => {
      const { startApi, startWorker, stores, ...deployment } = await books.start({ workers: 0 });
      const { wire, variables } = await openWireOf(books, stores);
      await startWorker(program === 'worker' ? variables : {});
      const { url } = program === 'API' ? await startApi(variables) : deployment;
      return underLoad(books, { wire, url });
    },
  );

fault(
  { ...rules, injected: 'the connections of API and worker to a healthy store die without a word, idle' },
  async (books) => {
    const { startApi, startWorker, stores } = await books.start({ workers: 0 });
    const { wire, variables } = await openWireOf(books, stores);
    const [{ url }] = await Promise.all([startApi(variables), startWorker(variables)]);
    const before = await medianMs(books, url);
    wire.swallow();
    await delay(wellAfterMs);
    const after = await medianMs(books, url);
    expect(after).toBeLessThan(3 * before + noticeableMs);
    return `a request takes ${after} ms ${wellAfterMs} ms after, ${before} ms before`;
  },
);

/** A wire to the queue's store, and what leads a program through it. */
async function openWireOf(books: Books, stores: Record<string, string>) {
  const name = inject('store').kind === 'redis' ? 'REDIS_URL' : 'DATABASE_URL';
  const wire = await openWireTo(stores[name] ?? '');
  books.release(wire.close);
  return { wire, variables: { [name]: wire.url } };
}

interface Flow {
  wire: Wire;
  /** Of the API. */
  url: string;
}

async function underLoad(books: Books, { wire, url }: Flow): Promise<string> {
  const before = await medianMs(books, url);
  const load = keepDoing(everyMs, () => ({ at: performance.now(), reply: books.chat({ url }) }));
  await delay(1000);
  const diedAt = performance.now();
  wire.swallow();
  await delay(wellAfterMs + 2000);
  const asked = await Promise.all(load.stop().map(async ({ at, reply }) => ({ at, reply: await reply })));
  expectCodes(repliesOf(asked), ['ok', 'timeout', 'queue_unavailable', 'provider_unavailable']);
  const late = asked.filter(({ at }) => at > diedAt + wellAfterMs);
  expectCodes(repliesOf(late), ['ok']);
  const after = await medianMs(books, url);
  expect(after).toBeLessThan(3 * before + noticeableMs);
  const lastBad = asked.findLast(({ reply }) => reply.status !== 200);
  const badMs = lastBad ? Math.round(lastBad.at - diedAt) : 0;
  const bad = asked.filter(({ reply }) => reply.status !== 200).length;
  return `${bad} of ${asked.length} failed, the last of them asked ${badMs} ms after; a request takes ${after} ms, ${before} ms before`;
}

const repliesOf = (asked: readonly { reply: ChatReply }[]): ChatReply[] => asked.map(({ reply }) => reply);

/** How long a request takes whose predecessor has ended, in the middle; all have to be answered. */
async function medianMs(books: Books, url: string): Promise<number> {
  const replies: ChatReply[] = [];
  for (let sample = 0; sample < samples; sample += 1) replies.push(await books.chat({ url }));
  expectCodes(replies, ['ok']);
  return Math.round(tookMsOf(replies, 0.5));
}
