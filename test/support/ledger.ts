import { type CallRow, callerOf, type LedgerBatch, type RequestRow } from '../../db/ledger/rows.js';
import type { ProviderId } from '../../shared/contracts/contract.js';
import type { CallTokens, Origin } from '../../shared/protocol/entries.js';

/** The day on which all happens unless a test says otherwise, in milliseconds. */
export const noon = Date.parse('2026-12-01T12:00:00Z');

/** The user of all rows unless a test says otherwise. */
export const annsId = '0d6f0a9e-5f0e-4bb4-8d1c-3c1a45f2a001';
const anns: Origin = { user: annsId, name: 'ann', api: 'chat', provider: 'openai', deadline: noon };

interface End {
  attempt: number;
  run: number;
  code: string;
  at: number;
  provider: ProviderId;
  model?: string;
  error?: { status?: number; type?: string; place?: string };
  attempts?: object[];
  waitedMs?: number;
  calledMs?: number;
}

interface SomeOfRequest {
  chat?: string;
  origin?: Partial<Origin>;
  addedAt?: number;
  end?: End;
  left?: { code: string; at: number };
  joins?: string;
}

/** The facts of a request that a test names, its times in milliseconds; the rest is Ann's. */
export function requestRow({
  chat = 'a',
  origin,
  addedAt = noon - 5000,
  end,
  left,
  joins,
}: SomeOfRequest = {}) {
  const { provider, model, stream = false, ...caller } = { ...anns, ...origin };
  const row: RequestRow = {
    ...{ chat, ...callerOf({ ...caller, provider }), provider, model, console: false, streamed: stream },
    ...{ stored: false, addedAt: new Date(addedAt), joins },
    ...(left && { leftWith: left.code, leftAt: new Date(left.at) }),
  };
  if (end === undefined) return row;
  const { attempt, run, code, error, attempts, waitedMs, calledMs } = end;
  return {
    ...{ ...row, attempt, run, code, attempts, waitedMs, calledMs, workedUntil: new Date(end.at) },
    ...{ answeredProvider: end.provider, answeredModel: end.model },
    ...{ errorStatus: error?.status, errorType: error?.type, errorPlace: error?.place },
  };
}

/** How the first attempt ended: at noon, well. */
export const requestEnd = (some: Partial<End> = {}): End => ({
  ...{ attempt: 1, run: 1, code: 'ok', at: noon, provider: 'openai' },
  ...some,
});

const noTokens = { input: 0, cached: 0, written: 0, writtenFor1h: 0, output: 0, thinking: 0 };

interface SomeOfCall extends Partial<Omit<CallRow, 'addedAt' | 'startedAt' | 'endedAt'>> {
  origin?: Partial<Origin>;
  tokens?: Partial<CallTokens>;
  cost?: number | null;
  addedAt?: number;
  endedAt?: number;
}

/** A call of Ann that took 100 tokens and gave 10, for a microdollar. */
export function callRow(some: SomeOfCall = {}): CallRow {
  const { origin, tokens, cost = 1000, addedAt = noon - 5000, endedAt = noon, ...rest } = some;
  return {
    ...{ chat: 'a', attempt: 1, run: 1, call: 1, kind: 'first' },
    ...{ provider: 'openai', model: 'gpt', answeredModel: 'gpt-1' },
    ...{ known: 'told', code: 'ok', requests: 1, costNanos: cost, priceDated: '2026-11-01' },
    ...rest,
    ...{ addedAt: new Date(addedAt), startedAt: new Date(noon - 1000), endedAt: new Date(endedAt) },
    ...{ ...noTokens, input: 100, output: 10, ...tokens },
    ...callerOf({ ...anns, ...origin }),
  };
}

/** A run of which nothing is known. */
export const lostRun = (some: SomeOfCall = {}): CallRow =>
  callRow({
    ...{ call: 0, kind: 'lost', known: 'lost', model: null, answeredModel: null, code: null },
    ...{ cost: null, priceDated: null, tokens: noTokens },
    ...some,
  });

export const ledgerBatch = (some: Partial<LedgerBatch>): LedgerBatch => ({
  ...{ requests: [], calls: [], ended: [] },
  ...some,
});
