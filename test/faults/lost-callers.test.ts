import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'vitest';
import { withLag } from '../support/lateness.js';
import { providerOf } from './support/at-providers.js';
import type { Books } from './support/books.js';
import { expectCodes, timed } from './support/expectations.js';
import { fault } from './support/fault.js';
import { openStoreWire } from './support/store-wire.js';

const open = 50;
const kept = 4;
const each = <T>(count: number, make: (n: number) => T): T[] =>
  Array.from({ length: count }, (_, n) => make(n));

fault(
  {
    id: 'F3',
    timed: true,
    injected: `kill -9 of an API process with ${open} streams that are not stored, and ${kept} that are`,
    unanswered: open + kept,
    timeoutMs: 120_000,
  },
  async (books) => {
    const { startApi } = await books.start({ workers: 2, variables: { CHAT_TIMEOUT_MS: '30000' } });
    const killed = await startApi();
    const { url } = killed;
    const streams = each(open, (n) =>
      books.stream({ url, provider: providerOf(n), model: 'sim-stream-900-100' }),
    );
    const stored = each(kept, (n) => {
      const headers = { 'Idempotency-Key': randomUUID() };
      return books.stream({ url, provider: providerOf(n), model: 'sim-stream-300-100', headers });
    });
    const both = [...streams, ...stored];
    for (const { end } of both) end.catch(() => undefined);
    const calls = await Promise.all(streams.map((one) => one.arrived()));
    const storedCalls = await Promise.all(stored.map((one) => one.arrived()));
    await Promise.all(both.map(({ begun }) => begun));
    await books.kill(killed.child);
    const { result: endedMs, lagMs } = await withLag(() =>
      timed(Promise.all(calls.map(({ closed }) => closed))),
    );
    expect(endedMs).toBeLessThan(20_000 + lagMs);
    await Promise.all(storedCalls.map(({ closed }) => closed));
    expect(storedCalls.filter(({ clientClosedFirst }) => clientClosedFirst)).toEqual([]);
    return `the ${open} calls ended ${endedMs} ms later, the ${kept} of stored chats went on to their end`;
  },
);

/** Longer than after which a process that does not report counts as gone. */
const awayMs = 17_000;
const frozenMs = 9000;

fault(
  {
    id: 'F3',
    timed: true,
    injected: `the store away for ${awayMs} ms, then an API process frozen for ${frozenMs} ms`,
    timeoutMs: 120_000,
  },
  async (books) => {
    const { wire, store } = await openStoreWire(books);
    const variables = { CHAT_TIMEOUT_MS: '55000', WORKER_LOCK_MS: '60000' };
    const { api } = await books.start({ store, workers: 2, variables });
    const asked = askAll(books, 'sim-latency-35000');
    await Promise.all(asked.map((one) => one.arrived()));
    // Until the workers have seen the process.
    await delay(2000);
    await wire.cut();
    await delay(awayMs);
    await wire.mend();
    await delay(2000);
    process.kill(api.pid, 'SIGSTOP');
    await delay(frozenMs);
    process.kill(api.pid, 'SIGCONT');
    const replies = await Promise.all(asked.map(({ reply }) => reply));
    expectCodes(replies, ['ok']);
    return `${replies.length} × 200, one call each`;
  },
);

const askAll = (books: Books, model: string) => each(8, (n) => books.ask({ provider: providerOf(n), model }));
