import { z } from 'zod';

const day = z.iso.date();
const clock = String.raw`(?<clock>\d{2}:\d{2})(?<seconds>:\d{2})?(?<fraction>\.\d+)?`;
const zone = String.raw`(?<zone>Z|(?<hours>[+-]\d{2})(?::?(?<minutes>\d{2}))?)`;
const pattern = new RegExp(`^(?<day>[\\d-]+)(?:(?:T|[ \\t]+)${clock}[ \\t]*${zone}?)?$`, 'i');

/**
 * Converts a time in the format of RFC 3339 or YAML (`2026-01-31`, `2026-01-31 10:00:00 +0100`) to RFC 3339 in UTC,
 * with milliseconds. Without a zone it is UTC. Undefined for anything else, and for a day that does not exist.
 */
export function parseTime(text: string): string | undefined {
  const parts = pattern.exec(text.trim())?.groups;
  // `new Date` would read the 30th of February as a day in March.
  if (parts === undefined || !day.safeParse(parts.day).success) return undefined;
  const { clock = '00:00', seconds = ':00', fraction = '', hours = '+00', minutes = '00' } = parts;
  const time = new Date(`${parts.day}T${clock}${seconds}${fraction.slice(0, 4)}${hours}:${minutes}`);
  if (Number.isNaN(time.getTime())) return undefined;
  // PostgreSQL's years below 100 would be read back as recent ones, and its years above 9999 not at all.
  return /^(?!00)\d{4}-/.test(time.toISOString()) ? time.toISOString() : undefined;
}

/**
 * The earliest moment, in UTC, that the time can mean: without a zone it may be local time anywhere, and days begin up
 * to 14 hours before those of UTC.
 */
export function earliestTime(text: string): string | undefined {
  const time = parseTime(text);
  if (time === undefined || pattern.exec(text.trim())?.groups?.zone !== undefined) return time;
  return new Date(Date.parse(time) - 14 * 3_600_000).toISOString();
}
