import { expect } from 'vitest';
import { type ProviderId, providerIds } from '../../shared/contracts/contract.js';
import { failureKinds } from '../../shared/failures.js';
import { profiles } from '../support/profiles.js';
import { type BooksRules, codeOf } from './support/balance.js';
import type { Books } from './support/books.js';
import { catalogue } from './support/catalogue.js';
import { linesWith } from './support/expectations.js';

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
}

type Way = keyof typeof ways;

const ways = {
  chat: async (books: Books, call: Call) => {
    const reply = await books.chat(call);
    return { ...reply, code: codeOf(reply) };
  },
  stream: async (books: Books, call: Call) => {
    const reply = await books.stream(call).end;
    return { ...reply, code: codeOf(reply) };
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

/** The ends of each model's requests, which have to be the same at every provider and in every way. */
function endsOf(met: readonly Met[], of: (one: Met) => string): Record<string, string[]> {
  const ends: Record<string, string[]> = {};
  for (const one of met) ends[one.model] = [...new Set([...(ends[one.model] ?? []), of(one)])];
  return ends;
}
const codeIn = ({ code }: Met): string => code;
/** Of a stream: whether it had begun as well. */
const endIn = ({ begun, code }: Met): string => `${begun ? 'begun' : 'plain'} ${code}`;

/** A problem in our own words, and none of the provider's. */
function expectOwnWords({ way, begun, code, body, provider }: Met): void {
  if (way === 'completion' || begun || code !== 'provider_error') return;
  const { title, detail } = failureKinds[code];
  const type = `urn:quillgate:problem:${code}`;
  const facts = { retryable: expect.any(Boolean), requestId: expect.any(String) };
  expect(body).toEqual({ ...{ type, title, detail, code, provider, status: 500 }, ...facts });
}

interface Row {
  rules?: BooksRules;
  by?: readonly Way[];
  /** How often each is asked for in each way; once by default. */
  times?: number;
  /** The models by the end that each of them comes to. */
  ends: Record<string, readonly string[]>;
  /** Whether the failures may be repeated, where all of them agree. */
  retryable?: boolean;
}

/** Models whose calls add up, because each has a breaker and a budget of its own; all others have one call each. */
const innocent = {
  provider_error: ['sim-null@P6'],
  content_blocked: ['sim-blocked@P6', 'sim-refused@P6'],
  provider_rejected: ['sim-status-400@P8'],
};
const passing = ['sim-fail-1-503-T2@T2', 'sim-limit-1-1-T2@T2'];
const halfway = ['sim-cut-40', 'sim-malformed-40', 'sim-unfinished-40', 'sim-stream-error-40'];
const atOnce = ['sim-status-503', 'sim-cut-0', 'sim-malformed-0', 'sim-unfinished-0', 'sim-stream-error-0'];

/** By their names. */
const rows: Record<string, Row> = {
  'P2 P5 errors of the provider and answers that are none → provider_error in our own words, after one retry at most':
    {
      rules: { callsPerRequest: 2 },
      ends: {
        provider_error: [
          ...[500, 502, 503, 529].map((status) => `sim-status-${status}`),
          ...['sim-truncated', 'sim-reset-body', 'sim-html', 'sim-garbage'],
        ],
      },
    },
  'P6 P8 refused, blocked or blank again and again → that, not to be repeated, and no breaker opens': {
    times: 5,
    ends: innocent,
    retryable: false,
  },
  'P7 wrong credentials → provider_rejected, not to be repeated': {
    by: ['chat'],
    ends: { provider_rejected: ['sim-status-401', 'sim-status-403'] },
    retryable: false,
  },
  'P14 answers and errors without an end → provider_error, and the worker ends the call': {
    ends: { provider_error: ['sim-endless', 'sim-endless-400', 'sim-endless-503'] },
    retryable: false,
  },
  'T1 streams that are cut, garbled, unfinished or fail halfway → a retryable error, and no retry': {
    by: ['stream'],
    ends: { 'begun provider_error': halfway },
    retryable: true,
  },
  'T2 streams that fail before the first delta → retried once, then a plain problem': {
    rules: { callsPerRequest: 2 },
    by: ['stream'],
    ends: { 'plain provider_error': atOnce, 'begun ok': [...passing, 'sim-deltas-1-1000000'] },
  },
};

const named = [...Object.values(innocent).flat(), ...passing, '*'].join(',');
const variables = {
  ...profiles.plain,
  PROVIDER_MAX_RESPONSE_BYTES: '1048576',
  ...Object.fromEntries(providerIds.map((id) => [`${id.toUpperCase()}_MODELS`, named])),
};

catalogue({ variables }, (add) => {
  for (const [name, { rules = {}, by, times = 1, ends, retryable }] of Object.entries(rows))
    add(`${name}, at every provider`, rules, async (books) => {
      const models = Object.values(ends).flat();
      const met = await meet(books, Array(times).fill(models).flat(), by);
      const wanted = Object.entries(ends).flatMap(([end, some]) => some.map((model) => [model, [end]]));
      expect(endsOf(met, by?.[0] === 'stream' ? endIn : codeIn)).toEqual(Object.fromEntries(wanted));
      for (const one of met) {
        expectOwnWords(one);
        if (retryable !== undefined && one.way !== 'completion') expect(one.body.retryable).toBe(retryable);
      }
      expect(endsOf(await meet(books, ['sim-echo'], ['chat']), codeIn)).toEqual({ 'sim-echo': ['ok'] });
      expect(linesWith(books, 'breaker changed')).toEqual([]);
      const made = books.deployment.simulator.calls.list();
      const endless = made.filter(({ model }) => model?.startsWith('sim-endless'));
      await Promise.all(endless.map(({ closed }) => closed));
      expect(endless.filter(({ clientClosedFirst }) => !clientClosedFirst)).toEqual([]);
    });
});
