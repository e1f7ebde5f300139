import type { LedgerCall, LedgerRequest } from '../../shared/contracts/ledger.ts';

const tokens = { input: 1200, cached: 1000, written: 0, writtenFor1h: 0, output: 30, thinking: 12 };

/** A chat that was answered, as the ledger has it. */
export const ledgerRequest = (own: Partial<LedgerRequest> = {}): LedgerRequest => ({
  ...{ id: 'chat', user: 'anna', userId: '1', token: null, tokenName: null, api: 'chat', console: false },
  ...{ session: null, provider: 'openai', model: 'gpt', answeredProvider: 'openai', answeredModel: 'gpt' },
  ...{ streamed: true, stored: false, result: 'ok', error: null, waitedMs: 300, calledMs: 2800 },
  ...{ addedAt: '2026-12-01T14:03:20.000Z', endedAt: '2026-12-01T14:03:23.200Z', firstTokenMs: 900 },
  ...{ totalMs: 3200, calls: 1, estimated: 0, lost: 0, tokens, cost: 0.0123 },
  ...own,
});

/** A call of it that took as long as this. */
export const ledgerCall = (tookMs: number): LedgerCall => ({
  ...{ attempt: 1, run: 1, call: 1, kind: 'first', provider: 'openai', model: 'gpt', answeredModel: null },
  startedAt: '2026-12-01T14:03:20.300Z',
  endedAt: new Date(Date.parse('2026-12-01T14:03:20.300Z') + tookMs).toISOString(),
  ...{ known: 'told', code: 'ok', status: 200, type: null, requests: 1, tokens, tier: null },
  ...{ requestId: null, cost: 0.0123, priceDated: null },
});
