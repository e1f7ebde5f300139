import { expect } from 'vitest';
import { type ProviderId, providerIds } from '../../shared/contracts/contract.js';
import { addUser } from '../support/accounts.js';
import { ofEveryPool, profiles } from '../support/profiles.js';
import { codeOf } from './support/balance.js';
import type { Books } from './support/books.js';
import { catalogue } from './support/catalogue.js';
import { eventually } from './support/expectations.js';
import { replaceWorkers } from './support/programs.js';

/** A request of one of the two users. */
interface Call {
  readonly provider: ProviderId;
  readonly model: string;
  readonly headers: Record<string, string>;
}

/** Sends the request, and gives the code of its end. */
type Ask = (books: Books, call: Call) => Promise<string>;

const chat: Ask = async (books, call) => codeOf(await books.chat(call));
const complete =
  (fields: object): Ask =>
  async (books, call) => {
    const { error } = await books.complete({ ...call, fields: { tools: undefined, ...fields } }).reply;
    return error?.code ?? 'ok';
  };
const formatOf = (name: string) => ({
  type: 'json_schema',
  json_schema: {
    name: 'f',
    strict: true,
    schema: {
      ...{ type: 'object', properties: { [name]: { type: 'string' } }, required: [name] },
      additionalProperties: false,
    },
  },
});

/** Answers of the provider to the hostile user, on a model that the patient user asks for, too. */
interface Attack {
  readonly model: string;
  readonly ask?: Ask;
  /** The ends of the hostile user's requests, one after the other, before the patient user asks. */
  readonly ends: readonly string[];
  /** The end of the request after these, once the pool has drawn its conclusion. */
  readonly next: string;
  /** The end of this user's requests once the patient one was answered; by default that of `next`. */
  readonly last?: string;
  /** How the patient user asks for the model, and the end of that request; `ok` by default. */
  readonly other?: { readonly ask?: Ask; readonly end?: string };
  /** Whether the hostile user is refused at every model, and not at this one alone. */
  readonly isOfAccount?: boolean;
}

const times = (count: number, end: string): string[] => Array.from({ length: count }, () => end);

const attacks: Record<string, Attack> = {
  'five 500s for three requests': {
    model: 'sim-fail-5-500-F1@F1-500',
    ...{ ends: times(3, 'provider_error'), next: 'provider_unavailable' },
  },
  'a 429 with a wait of 30 s': {
    model: 'sim-limit-1-30-F1@F1-wait',
    ...{ ends: ['provider_rate_limited'], next: 'provider_rate_limited', last: 'ok' },
  },
  '429s without a wait': {
    model: 'sim-fail-3-429-F1@F1-429',
    ...{ ends: ['provider_rate_limited', 'ok'], next: 'ok' },
  },
  'five 401s that name the model': {
    model: 'sim-denied-5-F1@F1-denied',
    ...{ ends: times(5, 'provider_rejected'), next: 'provider_unavailable' },
  },
  '400s that name a hint': {
    model: 'sim-no-hints@F1-hints',
    ...{ ask: complete({ temperature: 0.5 }), ends: times(10, 'ok'), next: 'ok' },
    other: { ask: complete({ temperature: 0.5 }) },
  },
  'replies that break the schema': {
    model: 'sim-format-broken@F1-format',
    ask: complete({ response_format: formatOf('a') }),
    ...{ ends: times(10, 'provider_error'), next: 'provider_error' },
    other: { ask: chat },
  },
  'replies that a filter has blocked': {
    model: 'sim-blocked@F1-blocked',
    ...{ ends: times(10, 'content_blocked'), next: 'content_blocked' },
    other: { end: 'content_blocked' },
  },
  'five 401s that name no model': {
    model: 'sim-fail-5-401-F1@F1-401',
    ...{ ends: times(5, 'provider_rejected'), next: 'provider_unavailable', isOfAccount: true },
  },
};

const models = Object.values(attacks).map(({ model }) => model);
const variables = {
  ...profiles.plain,
  // No probe comes before a case is over.
  BREAKER_RESET_MS: '120000',
  ...Object.fromEntries(providerIds.map((id) => [`${id.toUpperCase()}_MODELS`, [...models, '*'].join(',')])),
};

/** Less than the wait of a 429, more than any other request takes. */
const waits = { Prefer: 'wait=25' };

catalogue({ variables }, (add) => {
  let other: string | undefined;
  const otherUser = async ({ deployment }: Books) => {
    other ??= await addUser(deployment, 'other');
    return { ...waits, Authorization: other };
  };

  for (const [answers, attack] of Object.entries(attacks)) {
    add(
      `F1 one user gets ${answers} → each request ends as if this user were alone, and another's on the model is answered`,
      { callsPerRequest: 2 },
      async (books) => {
        const headers = await otherUser(books);
        // The account has not been called: good calls before would outweigh the bad ones.
        if (attack.isOfAccount) await replaceWorkers(books, {});
        await Promise.all(providerIds.map((provider) => attackAt(books, provider, { attack, headers })));
      },
    );
  }

  add(
    'F1 one user asks with ever new schemas for a model that hangs → no more than twice the concurrency of calls, and another is answered',
    {},
    async (books) => {
      const headers = await otherUser(books);
      await replaceWorkers(books, {
        ...ofEveryPool('CONCURRENCY', concurrency),
        ...ofEveryPool('TIMEOUT_MS', hangsForMs),
      });
      await Promise.all(providerIds.map((provider) => hangAt(books, provider, headers)));
    },
  );
});

async function attackAt(
  books: Books,
  provider: ProviderId,
  { attack, headers }: { attack: Attack; headers: Record<string, string> },
): Promise<void> {
  const { model, ask = chat, ends, next, last = next } = attack;
  const { ask: askAsOther = chat, end = 'ok' } = attack.other ?? {};
  const mine = { provider, model, headers: waits };
  const seen: string[] = [];
  while (seen.length < ends.length) seen.push(await ask(books, mine));
  expect({ provider, seen }).toEqual({ provider, seen: ends });
  const refused = await endOf(() => ask(books, { ...mine, headers: { Prefer: 'wait=1' } }));
  expect({ provider, refused }).toEqual({ provider, refused: next });
  for (let n = 0; n < 3; n += 1) {
    const answered = await askAsOther(books, { provider, model, headers });
    expect({ provider, answered }).toEqual({ provider, answered: end });
  }
  await eventually(async () => expect(await ask(books, mine)).toBe(last));
  const elsewhere = await chat(books, { ...mine, model: 'sim-echo' });
  expect({ provider, elsewhere }).toEqual({ provider, elsewhere: attack.isOfAccount ? next : 'ok' });
}

/** The end of a request; one that is in the queue when its user is refused ends with its caller's patience. */
async function endOf(ask: () => Promise<string>): Promise<string> {
  const end = await ask();
  return end === 'timeout' ? endOf(ask) : end;
}

const [concurrency, hangsForMs, hanging] = [2, 5000, 8];

async function hangAt(books: Books, provider: ProviderId, headers: Record<string, string>): Promise<void> {
  const model = `sim-hang@F1-hang-${provider}`;
  const ended: string[] = [];
  const asked = Array.from({ length: hanging }, (_, n) =>
    books.complete({
      provider,
      model,
      fields: { tools: undefined, response_format: formatOf(`${provider}${n}`) },
    }),
  );
  for (const { reply } of asked)
    reply.then(
      ({ error }) => ended.push(error?.code ?? 'ok'),
      () => undefined,
    );
  const answered = await chat(books, { provider, model: 'sim-echo', headers });
  expect({ provider, answered }).toEqual({ provider, answered: 'ok' });
  await eventually(() => expect(ended.length).toBeGreaterThanOrEqual(hanging - 2 * concurrency));
  const open = books.deployment.simulator.calls.list({ model }).filter((call) => call.ended === undefined);
  expect(open.length).toBeLessThanOrEqual(2 * concurrency);
  expect(ended.filter((code) => !['provider_timeout', 'provider_unavailable'].includes(code))).toEqual([]);
  for (const one of asked) one.leave();
}
