import { expect } from 'vitest';
import { type ProviderId, providerIds } from '../../shared/contract.js';
import { failureKinds } from '../../shared/failures.js';
import { profiles } from '../support/profiles.js';
import { codeOf } from './support/balance.js';
import type { Books } from './support/books.js';
import { catalogue } from './support/catalogue.js';
import { linesWith } from './support/expectations.js';
import type { StreamSeen } from './support/streams.js';

interface Call {
  provider: ProviderId;
  model: string;
}

/** How one request ended. */
interface Met extends Call {
  way: Way;
  status: number;
  code: string;
  body: Record<string, unknown>;
  /** Of a stream. */
  begun?: boolean;
  seen?: StreamSeen;
}

type Way = keyof typeof ways;

const ways = {
  chat: async (books: Books, call: Call) => {
    const reply = await books.chat(call);
    return { ...reply, code: codeOf(reply) };
  },
  stream: async (books: Books, call: Call) => {
    const { end, seen } = books.stream(call);
    const reply = await end;
    return { ...reply, seen, code: codeOf(reply) };
  },
  completion: async (books: Books, call: Call) => {
    const { status, body = {}, error } = await books.complete(call).reply;
    // OpenAI's clients know this one by another name.
    const code = error?.code === 'content_filter' ? 'content_blocked' : (error?.code ?? 'ok');
    return { status, body, code };
  },
};
const allWays: readonly Way[] = ['chat', 'stream', 'completion'];

/** Asks every provider for each of the models in each of the ways, all at once. */
const meet = (books: Books, models: readonly string[], by = allWays): Promise<Met[]> =>
  Promise.all(
    providerIds.flatMap((provider) =>
      models.flatMap((model) =>
        by.map(async (way) => ({ provider, model, way, ...(await ways[way](books, { provider, model })) })),
      ),
    ),
  );

/** The result of `of` for each model's requests, which has to be the same at every provider and in every way. */
function byModel(
  met: readonly Met[],
  of: (one: Met) => string = ({ code }) => code,
): Record<string, string[]> {
  const ends: Record<string, string[]> = {};
  for (const one of met) ends[one.model] = [...new Set([...(ends[one.model] ?? []), of(one)])];
  return ends;
}
const endOf = ({ begun, code }: Met): string => `${begun ? 'begun' : 'plain'} ${code}`;

const each = (models: readonly string[], value: string) =>
  Object.fromEntries(models.map((model) => [model, [value]]));

const times = <T>(count: number, models: readonly T[]): T[] => Array<readonly T[]>(count).fill(models).flat();

/** Every pool still takes requests, and no breaker has opened in this case. */
async function expectBreakersClosed(books: Books): Promise<void> {
  expect(byModel(await meet(books, ['sim-echo']))).toEqual({ 'sim-echo': ['ok'] });
  expect(linesWith(books, 'breaker changed')).toEqual([]);
}

/** Models whose calls add up, because each has a breaker and a budget of its own; all others have one call each. */
const listed = {
  empty: ['sim-empty@P6'],
  nothing: ['sim-null@P6'],
  blocked: ['sim-blocked@P6', 'sim-refused@P6'],
  credentials: ['sim-status-401@P7', 'sim-status-403@P7'],
  rejected: ['sim-status-400@P8'],
  passing: ['sim-fail-1-503-T2@T2', 'sim-limit-1-1-T2@T2'],
};
const named = [...Object.values(listed).flat(), '*'].join(',');
const variables = {
  ...profiles.plain,
  PROVIDER_MAX_RESPONSE_BYTES: '1048576',
  ...Object.fromEntries(providerIds.map((id) => [`${id.toUpperCase()}_MODELS`, named])),
};

catalogue({ variables }, (add) => {
  add(
    'P2 500, 502, 503 and 529 of every provider → provider_error in our own words, after one retry at most',
    { callsPerRequest: 2 },
    async (books) => {
      const models = [500, 502, 503, 529].map((status) => `sim-status-${status}`);
      const met = await meet(books, models);
      expect(byModel(met)).toEqual(each(models, 'provider_error'));
      const { title, detail } = failureKinds.provider_error;
      const own = {
        type: 'urn:quillgate:problem:provider_error',
        title,
        status: 500,
        detail,
        retryable: true,
      };
      for (const { way, provider, body } of met)
        if (way !== 'completion')
          expect(body).toEqual({ ...own, code: 'provider_error', provider, requestId: expect.any(String) });
    },
  );

  add(
    'P5 truncated JSON, a reset, HTML with 200, JSON of another shape, of every provider → provider_error',
    { callsPerRequest: 2 },
    async (books) => {
      const models = ['sim-truncated', 'sim-reset-body', 'sim-html', 'sim-garbage'];
      expect(byModel(await meet(books, models))).toEqual(each(models, 'provider_error'));
    },
  );

  add(
    'P6 nothing usable, again and again, of every provider → provider_error or content_blocked, and no breaker opens',
    {},
    async (books) => {
      const { empty, nothing, blocked } = listed;
      // A stream without a reply has broken off.
      const met = [
        ...(await meet(books, times(5, [...nothing, ...blocked]))),
        ...(await meet(books, times(5, empty), ['chat', 'completion'])),
      ];
      expect(byModel(met)).toEqual({
        ...each([...empty, ...nothing], 'provider_error'),
        ...each(blocked, 'content_blocked'),
      });
      await expectBreakersClosed(books);
    },
  );

  add(
    'P7 401 and 403 of every provider → provider_rejected, not to be repeated, and no breaker opens',
    {},
    async (books) => {
      // Half of five calls that show wrong credentials pause a pool.
      const met = [
        ...(await meet(books, ['sim-status-401@P7'], ['chat', 'stream'])),
        ...(await meet(books, ['sim-status-403@P7'])),
      ];
      expect(byModel(met)).toEqual(each(listed.credentials, 'provider_rejected'));
      for (const { way, body } of met) if (way !== 'completion') expect(body.retryable).toBe(false);
      await expectBreakersClosed(books);
    },
  );

  add(
    'P8 a 400 of every provider, fifty times → provider_rejected, and no breaker opens',
    {},
    async (books) => {
      const met = await meet(books, times(17, listed.rejected));
      expect(byModel(met)).toEqual(each(listed.rejected, 'provider_rejected'));
      await expectBreakersClosed(books);
    },
  );

  add(
    'P14 answers and errors without an end, of every provider → provider_error, and the worker ends the call',
    {},
    async (books) => {
      const models = ['sim-endless', 'sim-endless-400', 'sim-endless-503'];
      const met = await meet(books, models);
      expect(byModel(met)).toEqual(each(models, 'provider_error'));
      for (const { way, body } of met) if (way !== 'completion') expect(body.retryable).toBe(false);
      const { calls } = books.deployment.simulator;
      const endless = calls.list().filter(({ model }) => model?.startsWith('sim-endless'));
      expect(endless).toHaveLength(met.length);
      await Promise.all(endless.map(({ closed }) => closed));
      expect(endless.filter(({ clientClosedFirst }) => !clientClosedFirst)).toEqual([]);
    },
  );

  add(
    'T1 streams that are cut, garbled, unfinished or fail halfway, of every provider → a retryable error, and no retry',
    {},
    async (books) => {
      const models = ['sim-cut-40', 'sim-malformed-40', 'sim-unfinished-40', 'sim-stream-error-40'];
      const met = await meet(books, models, ['stream']);
      expect(byModel(met, endOf)).toEqual(each(models, 'begun provider_error'));
      for (const { body } of met) expect(body.retryable).toBe(true);
    },
  );

  add(
    'T1 a delta of a megabyte, no usage, a token limit, one byte at a time, of every provider → done, and the text is whole',
    {},
    async (books) => {
      const met = await meet(books, ['sim-deltas-1-1000000', 'sim-no-usage', 'sim-length'], ['stream']);
      expect(met.filter(({ code }) => code !== 'ok')).toEqual([]);
      for (const { model, seen, body } of met) {
        if (model.startsWith('sim-deltas')) expect(seen?.text).toBe('x'.repeat(1_000_000));
        if (model.startsWith('sim-no-usage')) expect(body.usage).toBeUndefined();
        if (model.startsWith('sim-length')) expect(body.finishReason).toBe('length');
      }
      const messages = [{ content: 'Grüße, 世界 🎉' }];
      await Promise.all(
        providerIds.map(async (provider) => {
          const { end, seen } = books.stream({ provider, model: 'sim-drip-1', messages });
          const { body } = await books.chat({ provider, messages });
          expect([(await end).status, seen.text]).toEqual([200, body.response]);
        }),
      );
    },
  );

  add(
    'T2 streams that fail before the first delta, of every provider → retried once, then a plain problem',
    { callsPerRequest: 2 },
    async (books) => {
      const failing = [
        'sim-status-503',
        'sim-cut-0',
        'sim-malformed-0',
        'sim-unfinished-0',
        'sim-stream-error-0',
      ];
      const strange = ['sim-html', 'sim-garbage', 'sim-empty', 'sim-null'];
      const refused = ['sim-status-400', 'sim-blocked'];
      const met = await meet(books, [...failing, ...strange, ...refused, ...listed.passing], ['stream']);
      expect(byModel(met, endOf)).toEqual({
        ...each([...failing, ...strange], 'plain provider_error'),
        ...{ 'sim-status-400': ['plain provider_rejected'], 'sim-blocked': ['plain content_blocked'] },
        ...each(listed.passing, 'begun ok'),
      });
      for (const { model, body } of met) if (failing.includes(model)) expect(body.retryable).toBe(true);
    },
  );
});
