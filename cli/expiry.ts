import { parseTime } from './output/time.js';

const unitsMs = { m: 60_000, h: 3_600_000, d: 86_400_000 };

/**
 * When a token ends that is made now: `30m`, `12h` or `90d` from now, a time in the future (a day alone: its start in
 * UTC), or undefined for `never`. Throws `RangeError` with a message that does not repeat the text.
 */
export function parseExpiry(text: string, now: Date): Date | undefined {
  if (text === 'never') return undefined;
  const end = afterSpan(text, now) ?? parseTime(text);
  if (end === undefined)
    throw new RangeError('must be like 30m, 12h or 90d, a day (2030-12-31), a time (RFC 3339), or never');
  const time = new Date(end);
  if (time <= now) throw new RangeError('must be in the future');
  return time;
}

function afterSpan(text: string, now: Date): number | undefined {
  const [, amount, unit] = /^(\d{1,6})([mhd])$/.exec(text) ?? [];
  if (amount === undefined) return undefined;
  return now.getTime() + Number(amount) * unitsMs[unit as keyof typeof unitsMs];
}
