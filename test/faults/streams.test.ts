import { expect } from 'vitest';
import { type ProviderId, providerIds } from '../../shared/contract.js';
import { withLag } from '../support/lateness.js';
import { beginWell, ofEveryPool } from './support/at-providers.js';
import type { Books } from './support/books.js';
import { fault } from './support/fault.js';
import type { AskedStream } from './support/streams.js';

const each = <T>(do_: (provider: ProviderId) => T): T[] => providerIds.map(do_);

/** Asks every provider for a stream of each of the models, all at once. */
const streamAll = (books: Books, models: readonly string[]): AskedStream[] =>
  models.flatMap((model) => each((provider) => books.stream({ provider, model })));

const endsOf = async (asked: readonly AskedStream[]) =>
  Promise.all(
    asked.map(async ({ end }) => {
      const { status, begun, body } = await end;
      return { begun, code: status === 200 ? 'ok' : body.code, retryable: body.retryable };
    }),
  );

fault(
  {
    id: 'T1',
    injected: 'streams that are cut, garbled, unfinished or fail after 40 of 80 deltas, of every provider',
  },
  async (books) => {
    await books.start();
    await beginWell(books, 12);
    const models = ['sim-cut-40', 'sim-malformed-40', 'sim-unfinished-40', 'sim-stream-error-40'];
    const asked = streamAll(books, models);
    for (const end of await endsOf(asked))
      expect(end).toEqual({ begun: true, code: 'provider_error', retryable: true });
    return `${asked.length} × error: provider_error, retryable, one call each; ${lengths(asked)} characters before it`;
  },
);

fault(
  {
    id: 'T1',
    injected:
      'a delta of a megabyte, no usage, a reply cut at the token limit, one byte at a time, of every provider',
  },
  async (books) => {
    await books.start({ variables: { CHAT_TIMEOUT_MS: '30000' } });
    const dripping = Promise.all(each((provider) => dripOf(books, provider)));
    const asked = streamAll(books, ['sim-deltas-1-1000000', 'sim-no-usage', 'sim-length']);
    expect(await endsOf(asked)).toEqual(asked.map(() => expect.objectContaining({ code: 'ok' })));
    for (const { model, seen } of asked) {
      if (model.startsWith('sim-deltas')) expect(seen.text).toBe('x'.repeat(1_000_000));
      if (model.startsWith('sim-no-usage')) expect(seen.end?.data.usage).toBeUndefined();
      if (model.startsWith('sim-length')) expect(seen.end?.data.finishReason).toBe('length');
    }
    for (const { dripped, whole } of await dripping) expect(dripped).toEqual(whole);
    return `${asked.length + providerIds.length} × done, the deltas joined are the response`;
  },
);

/** A reply that comes one byte at a time, with characters of several bytes in it, and the same at once. */
async function dripOf(books: Books, provider: ProviderId) {
  const messages = [{ content: 'Grüße, 世界 🎉' }];
  const { end, seen } = books.stream({ provider, model: 'sim-drip-1', messages });
  const { status, body } = await books.chat({ provider, messages });
  return {
    dripped: { status: (await end).status, text: seen.text },
    whole: { status, text: body.response },
  };
}

fault(
  {
    id: 'T2',
    injected: 'streams that fail before the first delta, of every provider',
    callsPerRequest: 2,
  },
  async (books) => {
    await books.start();
    await beginWell(books, 20);
    const failing = [
      'sim-status-503',
      'sim-cut-0',
      'sim-malformed-0',
      'sim-unfinished-0',
      'sim-stream-error-0',
    ];
    const failed = streamAll(books, failing);
    for (const end of await endsOf(failed))
      expect(end).toEqual({ begun: false, code: 'provider_error', retryable: true });
    const strange = await endsOf(streamAll(books, ['sim-html', 'sim-garbage', 'sim-empty', 'sim-null']));
    for (const end of strange) expect(end).toMatchObject({ begun: false, code: 'provider_error' });
    const retried = streamAll(books, ['sim-fail-1-503-retried', 'sim-limit-1-1-retried']);
    const ends = await endsOf(retried);
    expect(ends.map(({ code }) => code)).toEqual(ends.map(() => 'ok'));
    const rejected = await endsOf(streamAll(books, ['sim-status-400', 'sim-blocked']));
    for (const { begun } of rejected) expect(begun).toBe(false);
    return `${failed.length + strange.length} × plain 500 provider_error, after one retry at most; retried before the first delta: ${ends.length} × done`;
  },
);

const firstTokenMs = 1000;
const idleMs = 1500;

fault(
  {
    id: 'T3',
    timed: true,
    injected: 'streams that never begin, or stall after 20 deltas, of every provider',
  },
  async (books) => {
    await books.start({
      variables: {
        ...ofEveryPool('FIRST_TOKEN_TIMEOUT_MS', firstTokenMs),
        ...ofEveryPool('IDLE_TIMEOUT_MS', idleMs),
      },
    });
    await beginWell(books, 12);
    const { result, lagMs } = await withLag(async () => {
      const silent = streamAll(books, ['sim-hang', 'sim-stall-0', 'sim-drip']);
      const stalled = streamAll(books, ['sim-stall-20']);
      for (const end of await endsOf(silent))
        expect(end).toMatchObject({ begun: false, code: 'provider_timeout' });
      for (const end of await endsOf(stalled))
        expect(end).toMatchObject({ begun: true, code: 'provider_timeout' });
      return { silent: await longest(silent), stalled: await longest(stalled) };
    });
    // The deltas are 20 ms apart.
    expect(result.silent).toBeLessThan(firstTokenMs + 1000 + lagMs);
    expect(result.stalled).toBeLessThan(20 * 20 + idleMs + 1000 + lagMs);
    return `plain 500 provider_timeout after ${result.silent} ms at most; error: provider_timeout after ${result.stalled} ms`;
  },
);

fault(
  { id: 'T3', timed: true, injected: 'a stream that outlasts its time-out, but is never silent' },
  async (books) => {
    await books.start({
      variables: {
        CHAT_TIMEOUT_MS: '1000',
        ...ofEveryPool('TIMEOUT_MS', 1000),
        ...ofEveryPool('IDLE_TIMEOUT_MS', 1000),
      },
    });
    await beginWell(books, 1);
    const going = streamAll(books, ['sim-stream-150-20']);
    const ends = await endsOf(going);
    expect(ends.map(({ code }) => code)).toEqual(ends.map(() => 'ok'));
    const bounded = books.stream({ model: 'sim-stream-150-20', headers: { Prefer: 'wait=1' } });
    expect(await bounded.end).toMatchObject({ begun: true, body: { code: 'timeout' } });
    return 'done after three times its time-out; with wait=1 error: timeout';
  },
);

const lengths = (asked: readonly AskedStream[]): string => {
  const all = asked.map(({ seen }) => seen.text.length);
  return `${Math.min(...all)} to ${Math.max(...all)}`;
};

const longest = async (asked: readonly AskedStream[]): Promise<number> =>
  Math.round(Math.max(...(await Promise.all(asked.map(({ end }) => end))).map(({ tookMs }) => tookMs)));
