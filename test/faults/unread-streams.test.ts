import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'vitest';
import { withLag } from '../support/lateness.js';
import { codeOf } from './support/balance.js';
import { expectCodes } from './support/expectations.js';
import { fault } from './support/fault.js';
import { footprintOf } from './support/footprint.js';
import { deltas, openUnread, readRest, replyLength, slowKey } from './support/slow-reader.js';

const open = 10;
const mebibyte = 1_048_576;

fault(
  {
    id: 'T8',
    timed: true,
    injected: `${open} clients that read nothing of a stream of 8 MB, and eight that read theirs`,
    timeoutMs: 90_000,
  },
  async (books) => {
    const { api, url } = await books.start({ variables: { OPENAI_CONCURRENCY: '1' } });
    await Promise.all(Array.from({ length: open }, () => books.stream({ model: 'sim-echo' }).end));
    const before = footprintOf([api]);
    // They join while the chat is queued.
    await books.ask({ model: 'sim-latency-2000' }).arrived();
    const model = `sim-deltas-${deltas.count}-${deltas.length}@T8`;
    const writing = books.stream({ model, headers: slowKey });
    const slow = await Promise.all(
      Array.from({ length: open }, () => openUnread(url, { model, headers: slowKey })),
    );
    expect(codeOf(await writing.end)).toBe('ok');
    const { result: tookMs, lagMs } = await withLag(async () => {
      const others = Array.from({ length: 8 }, () =>
        books.stream({ provider: 'anthropic', model: 'sim-stream-100-20' }),
      );
      const ends = await Promise.all(others.map(({ end }) => end));
      expectCodes(ends, ['ok']);
      return Math.max(...ends.map((end) => end.tookMs));
    });
    expect(tookMs).toBeLessThan(100 * 20 + 1000 + lagMs);
    const megabytes = footprintOf([api]).megabytes - before.megabytes;
    // The one reply several times over, with what is not collected yet, which a new space of 32 MB lets be more
    // (decision 6). It does not grow with what is not read.
    expect(megabytes).toBeLessThan((3 * open * replyLength) / mebibyte);
    await delay(25_000);
    const read = await Promise.all(slow.map((response) => readRest(response)));
    for (const { bytes, text } of read) {
      expect(bytes).toBeLessThan(replyLength);
      expect(text).not.toContain('event: done');
    }
    const most = Math.max(...read.map(({ bytes }) => bytes));
    return `the others done after ${Math.round(tookMs)} ms; the API's memory ${megabytes} MB more; cut after ${most} bytes at most`;
  },
);
