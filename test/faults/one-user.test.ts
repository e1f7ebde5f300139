import { type ClientRequest, request } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { expect, inject } from 'vitest';
import { promptCanary } from '../support/canaries.js';
import { authorization, type ChatCall, type ChatReply } from '../support/deployment.js';
import { percentile, watchLag } from '../support/lateness.js';
import { measureSlowness } from '../support/machine-speed.js';
import { codeOf } from './support/balance.js';
import type { Books } from './support/books.js';
import { fault } from './support/fault.js';
import { paced } from './support/pace.js';
import { newUser } from './support/users.js';

const slowMs = 3000;
const slowModel = `sim-latency-${slowMs}@slow`;
const seconds = 30;
const turnMs = 3000;
const isRedis = inject('store').kind === 'redis';
/** On PostgreSQL, where each of them costs more of the machine that all programs share, fewer. */
/** On a slow machine it is the flood itself that takes the processors from the other user. */
const isLarge = isRedis && measureSlowness() < 1.5;
const flood = isLarge ? { waiting: 500, large: 200, torn: 400 } : { waiting: 200, large: 30, torn: 100 };

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
    const lag = watchLag();
    books.release(lag.stop);
    const attack = attackInTurns(books);
    const asks = {
      default: () => books.deployment.chat(byDefault(other.authorization)),
      slow: () => other({ model: slowModel }),
      failing: (n: number) => other({ model: `sim-fail-1-503-F1-${n}@once-${n}` }),
    };
    const asked = await Promise.all(
      Object.entries(asks).map(async ([name, ask]) => ({ name, replies: await askEachSecond(ask) })),
    );
    await attack.stop();
    const told = asked.map(({ name, replies }) => {
      const codes = replies.map(({ reply }) => codeOf(reply));
      const tookMs = replies.map(({ reply }) => reply.tookMs);
      const ownMs = replies.map(
        ({ endedAt }, n) => (tookMs[n] ?? 0) - lag.allowanceFor({ tookMs: tookMs[n] ?? 0, endedAt }),
      );
      return {
        name,
        codes,
        p95: percentile(tookMs, 0.95),
        ownP95: percentile(ownMs, 0.95),
        max: percentile(ownMs, 1),
      };
    });
    for (const { name, codes, ownP95, max } of told) {
      expect(
        codes.filter((code) => code !== 'ok'),
        name,
      ).toEqual([]);
      expect(ownP95, name).toBeLessThanOrEqual(2 * slowMs);
      expect(max, name).toBeLessThanOrEqual(4 * slowMs);
    }
    return told
      .map(({ name, codes, p95, ownP95 }) => {
        const [all, own] = [p95, ownP95].map(Math.round);
        return `${name}: ${codes.length} × 200, p95 ${all} ms, without the test's lateness ${own} ms`;
      })
      .join('; ');
  },
);

const askEachSecond = (ask: (n: number) => Promise<ChatReply>) =>
  paced({ count: seconds, everyMs: 1000 }, async (n) => ({
    reply: await ask(n),
    endedAt: performance.now(),
  }));

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
const large = new TextEncoder().encode(JSON.stringify({ messages: [{ content: 'x'.repeat(1_000_000) }] }));
const torn = gzipSync(large).subarray(0, -20);

const attacks: Attack[] = [
  // Cut calls of the other's slow model, while its time is unknown.
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
      body: JSON.stringify({
        model: 'sim-latency-5000@door',
        messages: [{ role: 'user', content: promptCanary }],
      }),
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
  chats(flood.large, (n) => ({
    headers: { Prefer: 'respond-async' },
    // The simulator runs beside the test: its echoes of megabytes would be the test's own load.
    model: `sim-stream-1-1@large-${n}`,
    body: large,
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
