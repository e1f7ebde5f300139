import type { CallRow, LedgerBatch, RequestEnd, RequestRow } from '../../db/ledger/rows.js';

/** The day on which all happens unless a test says otherwise, in milliseconds. */
export const noon = Date.parse('2026-12-01T12:00:00Z');

const userId = '0d6f0a9e-5f0e-4bb4-8d1c-3c1a45f2a001';
const origin = { user: userId, name: 'ann', api: 'chat', provider: 'openai', deadline: noon } as const;

/** The facts of a request that a test names; the rest is Ann's. */
export const requestRow = (
  some: Partial<Omit<RequestRow, 'origin'>> & { origin?: Partial<RequestRow['origin']> } = {},
): RequestRow => ({ chat: 'a', addedAt: noon - 5000, ...some, origin: { ...origin, ...some.origin } });

/** How the first attempt ended: at noon, well. */
export const requestEnd = (some: Partial<RequestEnd> = {}): RequestEnd => ({
  ...{ attempt: 1, run: 1, code: 'ok', at: noon, provider: 'openai' },
  ...some,
});

const noTokens = { input: 0, cached: 0, written: 0, writtenFor1h: 0, output: 0, thinking: 0 };

/** A call of Ann that took 100 tokens and gave 10, for a microdollar. */
export const callRow = (
  some: Partial<Omit<CallRow, 'origin' | 'tokens'>> & {
    origin?: Partial<CallRow['origin']>;
    tokens?: Partial<CallRow['tokens']>;
  } = {},
): CallRow => ({
  ...{ chat: 'a', attempt: 1, addedAt: noon - 5000, run: 1, start: 1, call: 1, kind: 'first' },
  ...{ provider: 'openai', model: 'gpt', answered: 'gpt-1', startedAt: noon - 1000, endedAt: noon },
  ...{ known: 'told', code: 'ok', status: null, type: null, requests: 1, tier: null, requestId: null },
  ...{ cost: 1000n, priceDated: '2026-11-01' },
  ...some,
  origin: { ...origin, ...some.origin },
  tokens: { ...noTokens, input: 100, output: 10, ...some.tokens },
});

/** A run of which nothing is known. */
export const lostRun = (some: Parameters<typeof callRow>[0] = {}): CallRow =>
  callRow({
    ...{ start: 0, call: 0, kind: 'lost', known: 'lost', model: null, answered: null, code: null },
    ...{ cost: null, priceDated: null, tokens: noTokens },
    ...some,
  });

export const ledgerBatch = (some: Partial<LedgerBatch>): LedgerBatch => ({
  ...{ requests: [], calls: [], ended: [] },
  ...some,
});
