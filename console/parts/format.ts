import type { ProviderError } from '../../shared/contracts/history.ts';

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

/** A time of RFC 3339 as the browser's user writes it, with the date unless it is today. */
export function formatTime(at: string, nowMs = Date.now()): string {
  const time = new Date(at);
  const isToday = time.toDateString() === new Date(nowMs).toDateString();
  return isToday ? time.toLocaleTimeString() : time.toLocaleString();
}

/** Hour and minute of a time in milliseconds since the epoch, as the browser's user writes them. */
export const formatMinute = (ms: number): string =>
  new Date(ms).toLocaleTimeString(undefined, { hour: '2-digit', minute: '2-digit' });

/** The browser's time zone with its distance from UTC, such as `Europe/Berlin (GMT+01:00)`. */
export function formatZone(nowMs = Date.now()): string {
  const format = new Intl.DateTimeFormat('en', { timeZoneName: 'longOffset' });
  const offset = format.formatToParts(nowMs).find(({ type }) => type === 'timeZoneName')?.value;
  const { timeZone } = format.resolvedOptions();
  return timeZone === 'UTC' || offset === undefined ? timeZone : `${timeZone} (${offset})`;
}

/** The texts between the commas, without spaces around and without empty ones. */
export const splitList = (text: string): string[] => text.split(',').flatMap((part) => part.trim() || []);

/** `HTTP 400 invalid_request_error` */
export const describeProviderError = ({ status, type, place }: ProviderError): string =>
  [status && `HTTP ${status}`, type, place && `at ${place}`].filter(Boolean).join(' ');
