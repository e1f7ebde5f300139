import type { LedgerCall, LedgerRequest } from '../../shared/contracts/ledger.ts';
import { describeProviderError } from '../parts/format.ts';
import { nameOf } from '../pools/describe.ts';

/** How a request has ended, as a sentence. */
export function describeResult({ result, error, answeredProvider, answeredModel }: LedgerRequest): string {
  const who = answeredProvider && [nameOf(answeredProvider), answeredModel].filter(Boolean).join(' ');
  const at = who ? ` at ${who}` : '';
  if (result === 'ok') return `Answered by ${who}.`;
  if (result === 'truncated') return `Answered by ${who}; the reply was cut at its token limit.`;
  if (result === 'blocked') return `The reply was withheld${at}.`;
  if (result === 'cancelled') return `Cancelled, or left by its caller${at && `, while it was${at}`}.`;
  return `Failed${at}${error ? `: ${describeProviderError(error)}` : ''}.`;
}

/** The phases of a request in their order, in milliseconds; together they are as long as it took. */
export function phasesOf(request: LedgerRequest, calls: readonly LedgerCall[]) {
  const { waitedMs, calledMs, firstTokenMs, totalMs } = request;
  const last = calls.at(-1);
  const lastMs = last ? Date.parse(last.endedAt) - Date.parse(last.startedAt) : 0;
  const writing = firstTokenMs === null ? 0 : Math.max(0, lastMs - firstTokenMs);
  const called = Math.max(0, (calledMs ?? 0) - writing);
  const waited = waitedMs ?? 0;
  return { waited, called, writing, other: Math.max(0, totalMs - waited - called - writing) };
}
