import { type ClientRequest, request } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { expect, inject } from 'vitest';
import { promptCanary } from '../support/canaries.js';
import { authorization, type ChatCall, type ChatReply } from '../support/deployment.js';
import { percentile, withLag } from '../support/lateness.js';
import { codeOf } from './support/balance.js';
import type { Books } from './support/books.js';
import { fault } from './support/fault.js';
import { paced } from './support/pace.js';
import { newUser } from './support/users.js';

const slowMs = 3000;
const slowModel = `sim-latency-${slowMs}@slow`;
const seconds = 60;
const turnMs = 6000;
const isRedis = inject('store').kind === 'redis';
/** On PostgreSQL, where each of them costs more of the machine that all programs share, fewer. */
const flood = isRedis ? { waiting: 500, large: 200, torn: 400 } : { waiting: 200, large: 30, torn: 100 };

fault(
  {
    id: 'F1',
    timed: true,
    callsPerRequest: 2,
    timeoutMs: 180_000,
    injected:
      'one user does in turns what hurts most: calls cut short, failing models, torn bodies, fallbacks without end, ' +
      `${flood.waiting} requests at once, ${flood.large} × 1 MB; another asks once a second`,
  },
  async (books) => {
    await books.start({
      variables: { CHAT_TIMEOUT_MS: '55000', OPENAI_MODELS: `${slowModel},*`, BREAKER_RESET_MS: '10000' },
    });
    const other = await newUser(books);
    const { result, lagMs } = await withLag(async () => {
      const attack = attackInTurns(books);
      const [quick, slow, failing] = await Promise.all([
        askEachSecond(() => books.deployment.chat(byDefault(other.authorization))),
        askEachSecond(() => other({ model: slowModel })),
        askEachSecond((n) => other({ model: `sim-fail-1-503-F1-${n}@once-${n}` })),
      ]);
      await attack.stop();
      return { quick, slow, failing };
    });
    for (const [asked, replies] of Object.entries(result)) {
      expect(
        replies.map(codeOf).filter((code) => code !== 'ok'),
        asked,
      ).toEqual([]);
      expect(percentileOf(replies, 0.95), asked).toBeLessThanOrEqual(2 * slowMs + lagMs);
      expect(percentileOf(replies, 1), asked).toBeLessThanOrEqual(4 * slowMs + lagMs);
    }
    return Object.entries(result)
      .map(([asked, replies]) => `${asked}: ${replies.length} × 200, p95 ${percentileOf(replies, 0.95)} ms`)
      .join('; ');
  },
);

const askEachSecond = (ask: (n: number) => Promise<ChatReply>): Promise<ChatReply[]> =>
  paced({ count: seconds, everyMs: 1000 }, ask);

const percentileOf = (replies: readonly ChatReply[], share: number): number =>
  Math.round(
    percentile(
      replies.map(({ tookMs }) => tookMs),
      share,
    ),
  );

/** A chat that names no model. */
const byDefault = (Authorization: string): ChatCall => ({
  messages: [{ content: promptCanary }],
  headers: { Authorization },
});

/** Begins something, and gives what ends it. */
type Attack = (books: Books) => () => void;

/** Chats at once; those that are still waited for at the end are left. */
const chats =
  (count: number, call: (n: number) => ChatCall): Attack =>
  (books) => {
    const asked = Array.from({ length: count }, (_, n) => books.ask(call(n)));
    for (const { reply } of asked) reply.catch(() => undefined);
    return () => {
      for (const { leave } of asked) leave();
    };
  };

/** Chats, again and again until the end. */
const repeated =
  (everyMs: number, attack: Attack): Attack =>
  (books) => {
    const ends = [attack(books)];
    const timer = setInterval(() => ends.push(attack(books)), everyMs);
    return () => {
      clearInterval(timer);
      for (const end of ends) end();
    };
  };

const impatient = { Prefer: 'wait=1' };
const megabyte = 'x'.repeat(1_000_000);
const torn = gzipSync(JSON.stringify({ messages: [{ content: megabyte }] })).subarray(0, -20);

const attacks: Attack[] = [
  // Cut calls of the other's slow model, while nobody knows how long it takes.
  repeated(
    1200,
    chats(12, () => ({ model: slowModel, headers: impatient })),
  ),
  repeated(
    1500,
    chats(40, (n) => ({ model: `sim-status-500@name-${n}` })),
  ),
  (books) => {
    const requests = Array.from({ length: flood.torn }, () => sendTorn(books.deployment.url));
    return () => {
      for (const each of requests) each.destroy();
    };
  },
  repeated(
    1000,
    chats(14, (n) => ({ model: `sim-fail-9999-503-budget@budget-${n}` })),
  ),
  repeated(
    1000,
    chats(4, () => ({
      model: 'sim-latency-5000@door',
      headers: impatient,
      path: '/v1/chat/completions',
      body: JSON.stringify({ model: 'openai/sim-latency-5000@door', messages: [{ content: promptCanary }] }),
    })),
  ),
  repeated(
    2000,
    chats(10, (n) => ({
      model: `sim-status-500@first-${n}`,
      headers: {
        'X-LLM-Fallback': [1, 2, 3, 4].map((m) => `openai/sim-status-500@next-${n}-${m}`).join(','),
      },
    })),
  ),
  chats(flood.waiting, (n) => ({
    model: `sim-latency-${slowMs / 2 + ((n % 20) * slowMs) / 20}`,
    headers: { Prefer: 'wait=60' },
  })),
  chats(flood.large, () => ({
    headers: { Prefer: 'respond-async' },
    body: JSON.stringify({ messages: [{ content: megabyte }] }),
  })),
];

/** A body whose last bytes never come. */
function sendTorn(url: string): ClientRequest {
  const sent = request(`${url}/chat`, {
    method: 'POST',
    headers: {
      ...{ Authorization: authorization, 'X-LLM': 'openai' },
      ...{
        'Content-Type': 'application/json',
        'Content-Encoding': 'gzip',
        'Content-Length': torn.length + 20,
      },
    },
  });
  sent.on('error', () => undefined);
  sent.write(torn);
  return sent;
}

/** One after the other, each for its turn, and then from the first again; each is over before the next. */
function attackInTurns(books: Books): { stop(): Promise<void> } {
  const stopped = new AbortController();
  const run = async () => {
    for (let n = 0; !stopped.signal.aborted; n += 1) {
      const end = attacks[n % attacks.length]?.(books);
      await delay(turnMs, undefined, { signal: stopped.signal }).catch(() => undefined);
      end?.();
    }
  };
  const running = run();
  return {
    stop: () => {
      stopped.abort();
      return running;
    },
  };
}
