import type { Response as HttpResponse } from 'express';
import { invalid } from '../../shared/validation.js';

/**
 * The value of a preference in a `Prefer` header (RFC 7240, 2), without quotes and parameters; empty when it has no
 * value, undefined when it is absent. `name` is in lower case. The first of repeated preferences counts.
 */
export function preferenceOf(header: string | undefined, name: string): string | undefined {
  for (const preference of header?.match(listItems) ?? []) {
    const [pair = ''] = preference.match(parts) ?? [];
    const [token = '', ...value] = pair.split('=');
    if (token.trim().toLowerCase() === name) return unquoted(value.join('=').trim());
  }
  return undefined;
}

// A quoted string may contain separators; an unclosed one extends to the end.
const listItems = /(?:[^,"]|"(?:[^"\\]|\\.)*"?)+/g;
const parts = /(?:[^;"]|"(?:[^"\\]|\\.)*"?)+/g;

const unquoted = (value: string): string =>
  /^"(?:[^"\\]|\\.)*"$/.test(value) ? value.slice(1, -1).replaceAll(/\\(.)/g, '$1') : value;

/** The seconds of `Prefer: wait=N` (RFC 7240, 4.3), if any. Throws `invalid_request` unless N is from 1 to `maxS`. */
export function readWait(header: string | undefined, maxS: number): number | undefined {
  const value = preferenceOf(header, 'wait');
  if (value === undefined) return undefined;
  const seconds = /^\d{1,9}$/.test(value) ? Number(value) : 0;
  if (seconds >= 1 && seconds <= maxS) return seconds;
  throw invalid('Prefer', `wait must be a whole number of seconds from 1 to ${maxS}`);
}

/** Whether the caller wants an immediate 202 instead of the reply: `Prefer: respond-async` (RFC 7240, 4.1). */
export const prefersAsync = (header: string | undefined): boolean =>
  preferenceOf(header, 'respond-async') === '';

/** Whether the caller wants requests with unknown fields refused: `Prefer: handling=strict` (RFC 7240, 4.4). */
export const prefersStrict = (header: string | undefined): boolean =>
  preferenceOf(header, 'handling')?.toLowerCase() === 'strict';

/** The preferences of a request that count. */
export interface Applied {
  isStrict?: boolean;
  isAsync?: boolean;
  waitS?: number | undefined;
}

/** Lists the applied preferences in `Preference-Applied` (RFC 7240, 3); each call replaces the list. */
export function markApplied(response: HttpResponse, { isStrict, isAsync, waitS }: Applied): void {
  const applied = [
    ...(isStrict ? ['handling=strict'] : []),
    ...(isAsync ? ['respond-async'] : []),
    ...(waitS === undefined ? [] : [`wait=${waitS}`]),
  ];
  if (applied.length > 0) response.set('Preference-Applied', applied.join(', '));
}
