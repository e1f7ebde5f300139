import type {
  LedgerCall,
  LedgerRequest,
  RequestDetails,
  TokenCounts,
} from '../../shared/contracts/ledger.ts';
import { describeProviderError, formatNumber } from '../parts/format.ts';
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

/** `1,200 in (1,000 cached), 30 out (12 thinking)`. */
export function describeTokens({
  input,
  cached,
  written,
  writtenFor1h,
  output,
  thinking,
}: TokenCounts): string {
  const partsOf = (counts: Readonly<Record<string, number>>) => {
    const some = Object.entries(counts).flatMap(([name, n]) => (n > 0 ? `${formatNumber(n)} ${name}` : []));
    return some.length === 0 ? '' : ` (${some.join(', ')})`;
  };
  const read = partsOf({ cached, 'written to the cache': written, 'of it for an hour': writtenFor1h });
  return `${formatNumber(input)} in${read}, ${formatNumber(output)} out${partsOf({ thinking })}`;
}

/** Whether nothing more will become known of a request. */
export const isOver = (details: RequestDetails | undefined): boolean => details?.state === 'ended';
