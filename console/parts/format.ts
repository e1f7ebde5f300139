import type { ProviderError } from '../../shared/contracts/history.ts';
import type { TokenCounts } from '../../shared/contracts/ledger.ts';

const numbers = new Intl.NumberFormat('en', { maximumFractionDigits: 1 });
const shares = new Intl.NumberFormat('en', { style: 'percent', maximumFractionDigits: 1 });

/** `1,234.5` */
export const formatNumber = (value: number): string => numbers.format(value);

/** `0.123` is `12.3%`. */
export const formatShare = (value: number): string => shares.format(value);

/** Milliseconds as people say them: `80 ms`, `1.5 s`, `4 min`, `3 h`, `2 d`. */
export function formatDuration(ms: number): string {
  if (ms < 1000) return `${Math.max(0, Math.round(ms))} ms`;
  if (ms < 60_000) return `${formatNumber(ms / 1000)} s`;
  if (ms < 3_600_000) return `${Math.floor(ms / 60_000)} min`;
  if (ms < 86_400_000) return `${Math.floor(ms / 3_600_000)} h`;
  return `${Math.floor(ms / 86_400_000)} d`;
}

/** A time of RFC 3339, or in milliseconds since 1970, in UTC: `2026-12-01 14:03:22`. */
export const formatTime = (at: string | number): string =>
  new Date(at).toISOString().slice(0, 19).replace('T', ' ');

/** Cents, or three digits of what is less: `$1,234.50`, `$0.0123`. */
const dollars = new Intl.NumberFormat('en', {
  style: 'currency',
  currency: 'USD',
  roundingPriority: 'morePrecision',
  minimumSignificantDigits: 3,
  maximumSignificantDigits: 3,
});

/** The known cost in dollars of so many calls, whose tokens may be estimated, beside runs that were lost. */
interface Costs {
  readonly cost: number | null;
  readonly calls: number;
  readonly estimated: number;
  readonly lost: number;
  /** Calls whose cost is unknown. */
  readonly unpriced?: number;
}

/** The cost of calls, `unknown` where that is not known of any, and `at least` where it is not known of all. */
export function formatCost({ cost, calls, estimated, lost, unpriced = 0 }: Costs): string {
  if (calls + lost === 0) return '–';
  if (cost === null) return 'unknown';
  return `${estimated + lost + unpriced > 0 ? 'at least ' : ''}${dollars.format(cost)}`;
}

/** The texts between the commas, without spaces around and without empty ones. */
export const splitList = (text: string): string[] => text.split(',').flatMap((part) => part.trim() || []);

/** `HTTP 400 invalid_request_error` */
export const describeProviderError = ({ status, type, place }: ProviderError): string =>
  [status && `HTTP ${status}`, type, place && `at ${place}`].filter(Boolean).join(' ');

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
