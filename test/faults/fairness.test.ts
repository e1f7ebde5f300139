import { expect, inject } from 'vitest';
import type { ChatReply } from '../support/deployment.js';
import { withLag } from '../support/lateness.js';
import { codeOf } from './support/balance.js';
import type { Books } from './support/books.js';
import { keepDoing, tookMsOf } from './support/expectations.js';
import { fault } from './support/fault.js';
import { paced } from './support/pace.js';
import { type Chat, newUser } from './support/users.js';

const callMs = 3000;
const model = `sim-latency-${callMs}`;
const isRedis = inject('store').kind === 'redis';
/** On PostgreSQL, where each of them costs more of the machine that all programs share, fewer. */
const flood = isRedis ? { waiting: 500, async: 200 } : { waiting: 200, async: 30 };
const requestsOfOther = 30;
const everyMs = callMs / 8;
const ofBadModels = 50;
/** As large as a body may be, nearly. */
const megabyte = 'x'.repeat(1_000_000);

fault(
  {
    id: 'Q5',
    timed: true,
    // Calls of the failing model are retried.
    callsPerRequest: 2,
    injected:
      `one user sends ${flood.waiting} requests at once, ${flood.async} asynchronous chats of 1 MB, ` +
      `and ${ofBadModels} each of a failing and a limited model; another some`,
    timeoutMs: 120_000,
  },
  async (books) => {
    await books.start({ variables: { CHAT_TIMEOUT_MS: '55000' } });
    const other = await newUser(books);
    const alone = await other({ model });
    const flooding = startFlood(books);
    await flooding.underWay;
    // How long it takes to read two hundred megabytes is the processor's affair.
    const early = await keepAsking(other, flooding.isRead);
    const { result: late, lagMs } = await withLag(() =>
      paced({ count: requestsOfOther, everyMs }, () => other({ model })),
    );
    const { accepted, refused } = await flooding.end();
    expect([...early, ...late].map(codeOf).filter((code) => code !== 'ok')).toEqual([]);
    const overheadMs = alone.tookMs - callMs;
    expect(p99(late)).toBeLessThan(2 * callMs + overheadMs + lagMs);
    return (
      `the other: ${early.length} × 200 while the flood is read, p99 ${Math.round(p99(early))} ms, then ${late.length} × 200, ` +
      `p99 ${Math.round(p99(late))} ms at ${callMs} ms a call; of the asynchronous chats ${accepted} accepted, ${refused} rate_limited`
    );
  },
);

/** Begins one chat after the other at the pace until `isOver` resolves; gives the replies of all. */
async function keepAsking(chat: Chat, isOver: Promise<unknown>): Promise<ChatReply[]> {
  const asking = keepDoing(everyMs, () => chat({ model }));
  await isOver;
  return Promise.all(asking.stop());
}

const p99 = (replies: readonly ChatReply[]): number => tookMsOf(replies, 0.99);

interface Flood {
  /** Resolves when the provider is at work on the first of it. */
  readonly underWay: Promise<unknown>;
  /** Resolves when all its large bodies have been read and answered. */
  readonly isRead: Promise<unknown>;
  /** Has those hang up who still wait; gives how many asynchronous chats were accepted and how many refused. */
  end(): Promise<{ accepted: number; refused: number }>;
}

/** Its calls are of different lengths, so that places become free one by one. */
function startFlood(books: Books): Flood {
  const latencyMs = (n: number) => callMs / 2 + ((n % 20) * callMs) / 40;
  const waiting = Array.from({ length: flood.waiting }, (_, n) =>
    books.ask({ model: `sim-latency-${latencyMs(n)}` }),
  );
  for (const { reply } of waiting) reply.catch(() => undefined);
  // One model each: a breaker and a rate limit are a model's.
  const bad = ['sim-status-500@failing', 'sim-retry-after-30@limited'].flatMap((badModel) =>
    Array.from({ length: ofBadModels }, () => books.ask({ model: badModel })),
  );
  for (const { reply } of bad) reply.catch(() => undefined);
  const headers = { Prefer: 'respond-async' };
  const body = JSON.stringify({ messages: [{ content: megabyte }] });
  const kept = Promise.all(Array.from({ length: flood.async }, () => books.chat({ headers, body })));
  return {
    underWay: waiting[0]?.arrived() ?? Promise.resolve(),
    isRead: kept,
    end: async () => {
      const codes = (await kept).map(codeOf);
      for (const caller of [...waiting, ...bad]) caller.leave();
      const [accepted, refused] = ['202', 'rate_limited'].map(
        (one) => codes.filter((code) => code === one).length,
      );
      expect(codes.filter((code) => code !== '202' && code !== 'rate_limited')).toEqual([]);
      return { accepted: accepted ?? 0, refused: refused ?? 0 };
    },
  };
}
